// SPDX-License-Identifier: Apache-2.0
//
// Evaluation of a graph at its checkpoints, with `evaluate_once` and `evaluate_repeatedly`.
#pragma once

#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/graph_session.hpp"
#include "stepwell/training/evaluation.hpp"

#include <memory>

namespace stepwell::tensorflow {

/// A graph to evaluate, in the place of a model. Each step executes `options.operations.train_op`, which should update metrics and not
/// train; without it, a step needs a hook that fetches something. For each evaluation, a new session of TensorFlow is opened: its
/// variables have the values of the checkpoint, and its local variables, such as metrics, their initial values.
///
///     tensorflow::graph_evaluation graph(eval_graph, {.operations = {.train_op = "update_metrics"}});
///     evaluate_once(graph, "run/model.ckpt-500", test_feeds, {}, final_ops_hook{accuracy});
///
/// A final op is a function of the raw session: `[](const graph_session& raw) { return raw.run_apart({"accuracy"}).front().as<float>(); }`.
class graph_evaluation {
public:
  explicit graph_evaluation(const graph& over, graph_session_options options = {});

  /// Returns a session with the values of a checkpoint.
  /// @errors Those of `graph_session` and of `restore`.
  [[nodiscard]] graph_session open_evaluation(const checkpoint_reader& source, const restore_options& options) const;

private:
  std::shared_ptr<detail::graph_state> graph_;
  graph_session_options options_;
};

static_assert(opens_evaluations<graph_evaluation>);

}  // namespace stepwell::tensorflow
