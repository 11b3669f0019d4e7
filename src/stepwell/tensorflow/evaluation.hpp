// SPDX-License-Identifier: Apache-2.0
//
// `graph_evaluation`, with which `evaluate_once` and `evaluate_repeatedly` evaluate a graph of TensorFlow with the values of a checkpoint.
#pragma once

#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/graph_session.hpp"
#include "stepwell/training/evaluation.hpp"

#include <memory>

namespace stepwell::tensorflow {

/// A graph to evaluate. Pass it to `evaluate_once` or `evaluate_repeatedly` instead of a model. Each step executes the operation
/// `options.operations.train_op`, which should update metrics and not train. If this name is empty, the operation of the graph's collection
/// `train_op` is used. If the graph has no such operation either, a hook must fetch something in each step. Each evaluation opens a new
/// session of TensorFlow. The variables of this session have the values of the checkpoint. Its local variables, such as those of metrics,
/// have their initial values.
///
///     tensorflow::graph_evaluation graph(eval_graph, {.operations = {.train_op = "update_metrics"}});
///     evaluate_once(graph, "run/model.ckpt-500", test_feeds, {}, final_ops_hook{accuracy});
///
/// A final op (an argument of `final_ops_hook`) is a callable that takes the `graph_session`: `[](const graph_session& raw) { return
/// raw.run_apart({"accuracy"}).front().as<float>(); }`.
class graph_evaluation {
public:
  explicit graph_evaluation(const graph& over, graph_session_options options = {});

  /// Returns a new session. Its variables have the values of the checkpoint `source`.
  /// @errors Those of `graph_session` and of `restore`.
  [[nodiscard]] graph_session open_evaluation(const checkpoint_reader& source, const restore_options& options) const;

private:
  std::shared_ptr<detail::graph_state> graph_;
  graph_session_options options_;
};

static_assert(opens_evaluations<graph_evaluation>);

}  // namespace stepwell::tensorflow
