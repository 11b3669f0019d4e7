// SPDX-License-Identifier: Apache-2.0
//
// The raw session over a graph: each step is exactly one run of TensorFlow, with the fetches and feeds of the caller and of all hooks.
#pragma once

#include "stepwell/base/trace.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/hook/run_options.hpp"
#include "stepwell/tensorflow/feeds.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

/// Names of the operations that make a session ready and that do a step. An empty name selects the operation in the graph's collection of
/// that name, if there is one.
struct graph_operations {
  std::string init_op = {};                  ///< Initialises the variables. Default: the initializers of the collection `variables`.
  std::string ready_op = {};                 ///< Returns the names of uninitialised variables. Default: checks each variable.
  std::string ready_for_local_init_op = {};  ///< Like `ready_op`, for the variables that `local_init_op` needs.
  std::string local_init_op = {};            ///< Default: the initializers of the local variables and of the tables.
  std::string summary_op = {};               ///< Returns encoded summaries. Default: no summaries.
  std::string train_op = {};                 ///< The step of `run()` and of `steps(source)`.
};

/// Options of TensorFlow's session.
struct runtime_config {
  /// Runs operations in the calling thread rather than in a pool, which is much faster for small graphs. Default: true if
  /// `session_config::inter_op_parallelism_threads` is 1.
  std::optional<bool> caller_thread = std::nullopt;
  /// Whether operations whose device does not exist are placed on another one.
  bool allow_soft_placement = false;
  bool log_device_placement = false;
  /// Time-out of each run, also for servers that do not answer. 0: none; with a master: 60 s.
  std::int64_t operation_timeout_in_ms = 0;
  /// Further settings: an encoded ConfigProto. The members above have priority.
  std::string config_proto = {};
};

/// Options of a `graph_session`.
struct graph_session_options {
  graph_operations operations = {};
  runtime_config runtime = {};
  session_target target = {};
};

/// The result of a step of a graph without fetches.
struct graph_step {};

namespace detail {
class session_core;
struct call_plan;
}  // namespace detail

/// A session of TensorFlow over a graph. Fetches are names ("loss:0", "loss"), handles, or `fetch<float>("loss:0")`; keys of feeds are
/// names or handles. Everything is checked against the graph before anything runs: names and dtypes once for each set of names, dtypes and
/// shapes of fed values in each run.
///
/// * A run with fetches or targets of its caller executes these. Other runs execute the train operation.
/// * The global step is read in the same run, after everything else in it. A graph without a global step counts its runs.
/// * A tensor that is both fed and fetched has the fed value.
class graph_session {
public:
  using result_type = graph_step;
  using fetch_key = detail::graph_fetch_key;
  static constexpr bool reads_feeds = true;

  struct outcome_type {
    graph_step result;
    std::int64_t step_before;
    std::int64_t step_after;
    std::vector<tensor> values;
    const detail::call_plan* plan;
  };

  /// Opens a session, without initialising anything.
  /// @errors `not_found_error` and `invalid_argument_error` for operations in the options, the collections or the SaverDef that the graph
  ///   does not have, or that cannot serve. Failures of TensorFlow.
  explicit graph_session(const graph& over, graph_session_options options = {});
  explicit graph_session(std::shared_ptr<detail::graph_state> over, graph_session_options options);
  graph_session(graph_session&&) noexcept;
  graph_session& operator=(graph_session&&) noexcept;
  ~graph_session();

  /// Does one run. `args` are targets and feeds.
  /// @errors `not_found_error` for unknown names; `invalid_argument_error` for a fetched operation, a dtype or a shape; before anything
  ///   runs. Failures of TensorFlow as the exceptions of their codes, with its text.
  template<class Request, class... Args>
  outcome_type run(const Request& request, Args&&... args) {
    auto& call = new_call();
    request.for_each_fetch([&](const auto& fetch) { call.add_fetch(fetch); });
    request.for_each_feed([&](const auto& key, const auto& value) { call.add_feed(key, value); });
    (call.take(args), ...);
    if constexpr (Request::has_options) {
      return run_call(Request::has_caller_fetches, &request.options());
    } else {
      return run_call(Request::has_caller_fetches, nullptr);
    }
  }

  /// Returns the value of a fetch.
  template<detail::names_tensor Fetch>
  [[nodiscard]] const tensor& read(const outcome_type& outcome, const Fetch& fetch) const {
    return detail::with_name(fetch, [&](std::string_view name) -> const tensor& { return value_in(outcome, name); });
  }
  template<class T>
  [[nodiscard]] T read(const outcome_type& outcome, const typed_fetch<T>& fetch) const {
    return value_in(outcome, fetch.name).template as<T>();
  }

  /// Returns the step after the last run of this session.
  [[nodiscard]] std::int64_t global_step() const noexcept { return step_; }
  /// Reads the step from the graph, because other sessions on the same servers may have changed it. @errors Failures of TensorFlow.
  [[nodiscard]] std::int64_t read_global_step() const;
  /// Returns the variables that the graph's saver saves; without a saver, those of the collection `variables`. Elements are copied out of
  /// the tensors of the last `pull`.
  [[nodiscard]] variable_list variables();
  /// Fetches all variables, in one run. The tensors are released with the result.
  [[nodiscard]] std::shared_ptr<void> pull();
  /// Sends restored values to the graph, in one run.
  void push();

  /// Runs operations and returns the values of `fetches`, without hooks, and without changing the global step that this session knows. Any
  /// thread may call it, also during a run.
  /// @errors Like `run`.
  std::vector<tensor> run_apart(const std::vector<std::string>& fetches, const target_list& targets = {},
                                std::vector<named_feed> feeds = {}) const;
  /// Returns the number of sets of fetches, feeds and targets that were prepared. Each costs TensorFlow several milliseconds.
  [[nodiscard]] std::size_t plan_count() const noexcept;
  /// Returns the names of the operations that are used, from the options, the collections, or by default.
  [[nodiscard]] const graph_operations& operations() const noexcept;
  [[nodiscard]] std::shared_ptr<const detail::session_core> core() const noexcept;

  // The steps of making a session ready, which the defaults of `scaffold<graph_session>` call.

  /// Runs the init operation. @errors `failed_precondition_error` if the graph has neither one nor a collection of variables.
  void init_variables();
  void init_local_variables();
  /// Return the names of uninitialised variables.
  [[nodiscard]] std::vector<std::string> uninitialized_variables() const;
  [[nodiscard]] std::vector<std::string> uninitialized_local_variables() const;

  /// Closes TensorFlow's session. Waiting runs of other threads end with `cancelled_error`.
  void close();

private:
  detail::graph_call& new_call() noexcept;
  outcome_type run_call(bool has_caller_fetches, const run_options* options);
  const tensor& value_in(const outcome_type& outcome, std::string_view name) const;
  void read_step() const;

  std::shared_ptr<detail::session_core> core_;
  mutable std::int64_t step_ = 0;  // changed by `uninitialized_local_variables`, too: a worker is ready when its chief has initialised
};

static_assert(raw_session<graph_session> && stepwell::detail::pulls_variables<graph_session>);

}  // namespace stepwell::tensorflow
