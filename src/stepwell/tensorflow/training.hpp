// SPDX-License-Identifier: Apache-2.0
//
// The entry point for graphs of TensorFlow: `monitored_training_session(graph, options, hooks...)`.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/session_settings.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/tensorflow/feeds.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/graph_session.hpp"
#include "stepwell/tensorflow/tensor.hpp"
#include "stepwell/threads/queue_runner.hpp"
#include "stepwell/training/monitored_training_session.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// Options of a training session over a graph. If the general `training_options` have a member of the same name, the meaning is the same.
template<>
struct training_options<tensorflow::graph> {
  std::string name = {};
  /// Address of a server of TensorFlow, such as "grpc://host:2222". Empty: the graph runs in this process.
  std::string master = {};
  bool is_chief = true;
  /// Scaffold with the functions that make the session ready. They are called with the `graph_session`. Null: a scaffold whose functions
  /// run the operations `init_op`, `ready_op`, `ready_for_local_init_op` and `local_init_op` of these options.
  std::shared_ptr<stepwell::scaffold<tensorflow::graph_session>> scaffold = nullptr;
  std::string checkpoint_dir = {};
  setting<seconds_value> save_checkpoint_secs = {};
  setting<std::int64_t> save_checkpoint_steps = {};
  setting<double> save_checkpoint_overhead = {};
  interval_bounds save_checkpoint_interval = {};
  setting<std::int64_t> save_summaries_steps = {};
  setting<seconds_value> save_summaries_secs = {};
  setting<std::int64_t> log_step_count_steps = {};
  seconds_value log_every_secs = 10;
  std::string summary_dir = {};
  /// Number of newest checkpoints to keep. Default: that of the graph's SaverDef, which also gives the default of
  /// `saver.keep_every_n_hours`. Without a SaverDef: `saver.max_to_keep`. Off: all checkpoints are kept.
  setting<int> max_to_keep = {};
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  std::optional<format::hparam_map> hparams = std::nullopt;
  std::vector<std::shared_ptr<checkpoint_saver_listener>> checkpoint_listeners = {};
  saver_options saver = {};
  /// Numbers of threads of TensorFlow's session, and the pool of threads for I/O. If `inter_op_parallelism_threads` is 1, and
  /// `runtime.caller_thread` is not set, operations run in the thread that calls `run`.
  session_config config = {};
  /// With a master: time that the session waits for the servers that its graph needs, before it throws `deadline_exceeded_error`. A worker
  /// then waits for its chief, again at most this time.
  seconds_value max_wait_secs = 7200;
  /// Interval at which a waiting session checks whether the servers answer, and whether the chief has made the graph ready.
  seconds_value recovery_wait = 1;
  retry_policy retry = {};
  bool keep_initial_state = true;
  unseekable_policy on_unseekable = unseekable_policy::fail;
  other_data_policy on_other_data = other_data_policy::warn;
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  seconds_value stop_grace_period_secs = 120;
  std::stop_token stop_token = {};
  std::vector<int> stop_on = {};
  setting<seconds_value> preemption_grace = {};
  std::optional<bool> check_update_fence = std::nullopt;  ///< Has no effect: a graph has no `update_fence`.
  std::shared_ptr<stepwell::clock> clock = nullptr;

  /// Name of the operation that a run executes if its caller passes neither fetches nor targets. Empty: the operation in the graph's
  /// collection `train_op`.
  std::string train_op = {};
  /// Names of the operations that make the session ready; see `graph_operations`. Empty: the operation in the graph's
  /// collection of that name or, if there is none, TensorFlow's default.
  std::string init_op = {};
  std::string ready_op = {};
  std::string ready_for_local_init_op = {};
  std::string local_init_op = {};
  /// Name of the tensor with encoded summaries. Empty: the tensor in the graph's collection `summary_op`. Other values are written by a
  /// `summary_saver_hook`: `summary_saver_hook{{.save_steps = 100}, summary::scalar("loss", tensorflow::typed_fetch<float>("loss:0"))}`.
  std::string summary_op = {};
  /// Further settings of TensorFlow's session.
  tensorflow::runtime_config runtime = {};
  /// Whether a chief writes a ".meta" file beside each checkpoint. With this file, TensorFlow can import the graph and the checkpoint.
  bool save_meta_graph = true;
  /// Whether a chief writes the graph at the start: to the event file, and to the file graph.pbtxt in the directory of the checkpoints. If
  /// the session has no such directory, the file is not written.
  bool save_graph_def = true;
};

namespace detail {

/// The summary op of a graph: fetches the tensor `projection`, and writes its strings, which are encoded summaries, to the event file
/// unchanged.
template<>
struct summary_option_op<tensorflow::graph> {
  std::string projection;

  void write(summary::writer& out, const tensorflow::tensor& value, std::int64_t step) const;
};

}  // namespace detail

namespace tensorflow::detail {

using graph_summary_hook = stepwell::detail::default_summary_hook<graph>;

class graph_work;

/// The hook of a chief that writes the graph to files when the session is created first, and starts the graph's queue runners in every
/// creation of the session. On a worker, this hook does nothing.
class graph_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  graph_hook(std::shared_ptr<graph_state> graph, const training_options<tensorflow::graph>& options);

  void after_create_session(auto& session, coordinator& threads) { start(session.raw_session(), session.global_step(), threads); }

private:
  void start(const graph_session& raw, std::int64_t step, coordinator& threads);

  std::shared_ptr<graph_work> work_;
};

/// Creates the `graph_session` of a chief or of a worker, depending on the options.
class graph_session_creator {
public:
  graph_session_creator(std::shared_ptr<graph_state> graph, const training_options<tensorflow::graph>& options);

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

/// Returns `options`, completed by what the graph's saver says: the checkpoints that are kept, and, if `saver.shards` is 1, the number of
/// shards of a sharded saver. If `save_meta_graph` is true, a chief gets a listener that writes the ".meta" files.
[[nodiscard]] training_options<tensorflow::graph> completed(const std::shared_ptr<graph_state>& graph,
                                                            training_options<tensorflow::graph> options);
/// Returns the summary hook. The hook writes nothing if the graph has no summary operation, or if `work` is null.
[[nodiscard]] graph_summary_hook summaries_of(const graph_state& graph, const training_options<tensorflow::graph>& options,
                                              std::shared_ptr<stepwell::detail::summary_work> work);

template<template<class, class...> class Session, class... Hooks>
std::type_identity<Session<graph_session, step_counter_hook, graph_hook, graph_summary_hook, checkpoint_saver_hook, Hooks...>>
    graph_session_with(std::type_identity<std::tuple<Hooks...>>);
template<template<class, class...> class Session, class... Hooks>
using session_of_hooks = typename decltype(detail::graph_session_with<Session>(stepwell::detail::held_of<Hooks...>()))::type;

/// Returns a blocking or asynchronous `Session` over the graph `over`. The arguments of its constructor are `first...`, the settings, a
/// creator and the hooks.
template<template<class, class...> class Session, class... Hooks, class... First>
auto make_training_session(const graph& over, training_options<graph> given, std::tuple<First...> first, Hooks... hooks) {
  const auto options = detail::completed(over.state(), std::move(given));
  const stepwell::detail::session_defaults<graph> defaults(options);
  auto counter = defaults.counter();
  auto summaries = detail::summaries_of(*over.state(), options, defaults.summary_work());
  auto saver = defaults.saver(sizeof...(First) > 0);
  auto settings = defaults.settings(saver);
  graph_hook graphs(over.state(), options);
  const auto make = [&](First... one, auto... flat) {
    return session_of_hooks<Session, Hooks...>(std::move(one)..., std::move(settings), graph_session_creator(over.state(), options),
                                               std::move(counter), std::move(graphs), std::move(summaries), std::move(saver),
                                               std::move(flat)...);
  };
  return std::apply(make, std::tuple_cat(std::move(first), stepwell::detail::flattened_hooks(options.is_chief, std::move(hooks)...)));
}

}  // namespace tensorflow::detail

/// Returns a session that trains a graph. The session of a chief restores the newest complete checkpoint of `options.checkpoint_dir`. If
/// there is none, it runs the init operation. A worker waits for its chief. Depending on the options, a chief has default hooks, which
/// count steps, write the graph's summaries, save checkpoints, and start the graph's queue runners. The given `hooks` are added. In their
/// arguments, values of the graph are selected by name: `nan_tensor_hook{"loss:0"}`.
///
///     auto graph = tensorflow::graph::import_meta_graph("model.ckpt-0.meta");
///     auto session = monitored_training_session(graph, {.checkpoint_dir = "run"}, nan_tensor_hook{"loss:0"});
///     while (!session.should_stop()) { session.run(target("train_op"), feed("images:0", images)); }
///
/// @errors Those of `monitored_training_session` for a model, and those of `graph_session`.
template<class... Hooks>
[[nodiscard]] auto monitored_training_session(tensorflow::graph& graph, training_options<tensorflow::graph> options = {}, Hooks... hooks) {
  return tensorflow::detail::make_training_session<monitored_session>(graph, std::move(options), std::tuple<>(), std::move(hooks)...);
}

}  // namespace stepwell
