// SPDX-License-Identifier: Apache-2.0
//
// The entry point for graphs of TensorFlow: `monitored_training_session(graph, options, hooks...)`.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_options.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/tensorflow/feeds.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/graph_session.hpp"
#include "stepwell/tensorflow/tensor.hpp"
#include "stepwell/threads/coordinator.hpp"
#include "stepwell/training/monitored_training_session.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace tensorflow {

/// Options that only a session over a graph has. Give them to `monitored_training_session` beside the hooks.
struct graph_options {
  graph_operations operations = {};  ///< Names of the operations that make the session ready and that do a step.
  runtime_config runtime = {};       ///< Settings of TensorFlow's session.
  /// Whether a chief writes a ".meta" file beside each checkpoint. With this file, TensorFlow can import the graph and the checkpoint.
  bool save_meta_graph = true;
  /// Whether a chief writes the graph at the start: to the event file, and to the file graph.pbtxt in the directory of the checkpoints. If
  /// the session has no such directory, the file is not written.
  bool save_graph_def = true;
};

}  // namespace tensorflow

namespace detail {
template<>
inline constexpr bool is_beside_hooks<tensorflow::graph_options> = true;
}  // namespace detail

namespace tensorflow::detail {

/// The summary op of a graph: fetches the tensor `projection`, and writes its strings, which are encoded summaries, to the event file
/// unchanged.
struct graph_summary {
  std::string projection;

  void write(summary::writer& out, const tensor& value, std::int64_t step) const;
};

class graph_work;

/// The hook of a chief that writes the graph to files when the session is created first, and starts the graph's queue runners in every
/// creation of the session. On a worker, this hook does nothing.
class graph_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  graph_hook(std::shared_ptr<graph_state> graph, const training_options& options, const graph_options& of_graph);

  void after_create_session(auto& session, coordinator& threads) { start(session.raw_session(), session.global_step(), threads); }

private:
  void start(const graph_session& raw, std::int64_t step, coordinator& threads);

  std::shared_ptr<graph_work> work_;
};

/// Creates the `graph_session` of a chief or of a worker, depending on the options.
class graph_session_creator {
public:
  graph_session_creator(std::shared_ptr<graph_state> graph, std::shared_ptr<scaffold<graph_session>> with, const training_options& options,
                        graph_options of_graph);

  [[nodiscard]] graph_session create_session(session_creation& creation);

private:
  void wait_for_servers(session_creation& creation) const;

  std::shared_ptr<graph_state> graph_;
  std::shared_ptr<scaffold<graph_session>> scaffold_;
  graph_session_options options_;
  bool keeps_initial_state_;
  seconds_value max_wait_secs_;
  seconds_value recovery_wait_;
};

/// Completes `options`. If `of_scaffold` has a value, it replaces `options.saves.saver`. Otherwise takes two options from the graph's saver: how
/// many checkpoints are kept and, if `saver.shards` is 1, the number of shards of a sharded saver. If `save_meta_graph` is true, a chief
/// gets a listener that writes the ".meta" files.
/// @errors `invalid_argument_error` for invalid options.
void complete(training_options& options, const graph_options& of_graph, const std::shared_ptr<graph_state>& graph,
              const std::optional<saver_options>& of_scaffold, bool has_summaries);
/// Returns the name of the tensor with encoded summaries. Empty if there is none.
[[nodiscard]] std::string summary_name_of(const graph_state& graph, const graph_options& of_graph);
/// Returns the hook that writes the graph's summaries. The hook writes nothing if `name` is empty, or if summaries are off.
[[nodiscard]] summary_saver_hook<graph_summary> graph_summaries(training_options options, std::string name);

/// Returns the options of a graph among the arguments.
template<class... Given>
graph_options graph_options_in(Given&... given) {
  static_assert((0 + ... + std::is_same_v<Given, graph_options>) <= 1, "stepwell: graph_options are given twice");
  graph_options found;
  [[maybe_unused]] const auto look = [&found]<class One>(One& one) {
    if constexpr (std::is_same_v<One, graph_options>) { found = std::move(one); }
  };
  (look(given), ...);
  return found;
}

/// Returns the hook of the arguments `summaries(...)` as a tuple, which is empty if there are none. `is_alone`: no other hook writes the
/// hyper-parameters.
template<class... Ops>
auto given_summaries(training_options options, bool is_alone, std::tuple<Ops...> ops) {
  static_assert((!stepwell::detail::is_written<Ops> && ...),
                "stepwell: a graph has no result that a function could write; give summary::scalar(\"loss\", "
                "tensorflow::typed_fetch<float>(\"loss:0\"))");
  if constexpr (sizeof...(Ops) == 0) {
    return std::tuple<>();
  } else {
    if (!is_alone) { options.summaries.hparams.reset(); }
    return std::apply([&](auto&... one) { return std::tuple(stepwell::detail::default_hooks::summaries(options, std::move(one)...)); },
                      ops);
  }
}

/// Returns a blocking or asynchronous `Session` over the graph `over`. The arguments of its constructor are `first...`, the setup, a creator
/// and the hooks.
template<template<class, class...> class Session, class... Given, class... First>
auto make_training_session(const graph& over, training_options& options, std::tuple<First...> first, Given... given) {
  const auto with = stepwell::detail::scaffold_in<graph_session>(given...);
  const auto of_graph = detail::graph_options_in(given...);
  auto ops = stepwell::detail::summary_ops_in(given...);
  detail::complete(options, of_graph, over.state(), with ? with->saver() : std::nullopt, std::tuple_size_v<decltype(ops)> > 0);
  auto saver = stepwell::detail::default_hooks::saver(options, sizeof...(First) > 0);
  auto setup = stepwell::detail::setup_with(options, saver);
  const auto summary = detail::summary_name_of(*over.state(), of_graph);
  auto hooks = std::tuple_cat(std::tuple(stepwell::detail::default_hooks::counter(options), graph_hook(over.state(), options, of_graph),
                                         detail::graph_summaries(options, summary)),
                              detail::given_summaries(options, summary.empty(), std::move(ops)), std::tuple(std::move(saver)),
                              stepwell::detail::flattened_hooks(options.is_chief, std::move(given)...));
  const auto make = [&](First... one, auto... hook) {
    return Session<graph_session, decltype(hook)...>(std::move(one)..., std::move(setup),
                                                     graph_session_creator(over.state(), with, options, of_graph), std::move(hook)...);
  };
  return std::apply(make, std::tuple_cat(std::move(first), std::move(hooks)));
}

}  // namespace tensorflow::detail

/// Returns a session that trains a graph. The session of a chief restores the newest complete checkpoint of `options.checkpoint_dir`. If
/// there is none, it runs the init operation. A worker waits for its chief. Depending on the options, a chief has default hooks, which
/// count steps, write the graph's summaries, save checkpoints, and start the graph's queue runners. `given` are hooks and, in any position,
/// `tensorflow::graph_options`, a `scaffold<tensorflow::graph_session>`, and any number of `summaries(...)`. In their arguments, values of
/// the graph are selected by name: `nan_tensor_hook{"loss:0"}`.
///
///     auto graph = tensorflow::graph::import_meta_graph("model.ckpt-0.meta");
///     auto session = monitored_training_session(graph, {.checkpoint_dir = "run"}, nan_tensor_hook{"loss:0"});
///     while (!session.should_stop()) { session.run(target("train_op"), feed("images:0", images)); }
///
/// Some options have another meaning than for a model:
/// * `master` is the address of a server of TensorFlow, such as "grpc://host:2222". If it is empty, the graph runs in this process.
/// * `max_wait_secs` is also the time that the session waits for the servers that its graph needs, and `recovery_wait` the interval at which
///   it checks whether they answer.
/// * The default of `saves.saver.max_to_keep`, and of `saves.saver.keep_every_n_hours`, is that of the graph's SaverDef, if there is one and the scaffold has
///   no saver options.
/// * `config` has the numbers of threads of TensorFlow's session. If `inter_op_parallelism_threads` is 1, and `runtime.caller_thread` is not
///   set, operations run in the thread that calls `run`.
/// * `check_update_fence` has no effect: a graph has no `update_fence`. `summaries.at_end` cannot be true: the results of runs cannot be
///   copied. If it is not set, the last step is a step like any other, as in Python.
/// * `group` must be null: a graph has no group of processes. TensorFlow's own servers train it on several machines, see `master`.
/// * The functions of the scaffold are called with the `graph_session`. Without a scaffold, the operations `init_op`, `ready_op`,
///   `ready_for_local_init_op` and `local_init_op` of `graph_options::operations` are run.
/// @errors Those of `monitored_training_session` for a model, and those of `graph_session`. `invalid_argument_error` if `options.group` is
/// set, or if `options.summaries.at_end` is true.
template<class... Given>
[[nodiscard]] auto monitored_training_session(tensorflow::graph& graph, training_options options = {}, Given... given) {
  return tensorflow::detail::make_training_session<monitored_session>(graph, options, std::tuple<>(), std::move(given)...);
}

}  // namespace stepwell
