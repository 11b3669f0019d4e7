// SPDX-License-Identifier: Apache-2.0
//
// The raw session over a graph of TensorFlow. Each step is exactly one run of TensorFlow, with the fetches and feeds of the caller and of
// all hooks.
#pragma once

#include "stepwell/base/trace.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_options.hpp"
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
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

/// Names of the operations that make a session ready and that do a step. If a member is empty, the operation is taken from the collection
/// of the graph that is called like the member, for example `init_op`. If there is no such collection, the default of the member is used.
struct graph_operations {
  /// Initialises the variables. Default: the initializers of the collections `variables` and `resources`.
  std::string init_op = {};
  /// Returns the names of uninitialised variables. Default: checks each variable, including the local variables.
  std::string ready_op = {};
  /// Like `ready_op`, for the variables that `local_init_op` needs. Default: checks each variable except the local variables.
  std::string ready_for_local_init_op = {};
  /// Initialises local variables and tables. A SavedModel may have this operation in the collection `saved_model_main_op` or
  /// `legacy_init_op`. Default: the initializers in the collections `local_variables` and `table_initializer`.
  std::string local_init_op = {};
  /// Returns encoded summaries. Default: no summaries.
  std::string summary_op = {};
  /// The operation that a run executes if its caller passes neither fetches nor targets. No default: without this operation, such a run
  /// fails. The collection is used only if it has exactly one operation.
  std::string train_op = {};
};

/// Options of TensorFlow's session.
struct runtime_config {
  /// Runs operations in the calling thread rather than in a pool, which is much faster for small graphs. Default: true if
  /// `session_config::inter_op_parallelism_threads` is 1.
  std::optional<bool> caller_thread = std::nullopt;
  /// Whether an operation whose device does not exist is placed on another device.
  bool allow_soft_placement = false;
  bool log_device_placement = false;  ///< Whether TensorFlow logs the device of each operation.
  /// Time-out of each run and, with a master, of closing the session. If it is 0, the time-out is 60 s with a master; without a
  /// master, there is no time-out.
  std::int64_t operation_timeout_in_ms = 0;
  /// With a master: the tasks whose servers the session uses, such as "/job:ps". A session is opened only if all of them answer. A list
  /// without elements selects all tasks of the cluster. Default: if this process has started a server of the master's cluster, the task of
  /// the master and the tasks in the device names of the graph; otherwise all tasks of the cluster.
  std::optional<std::vector<std::string>> device_filters = std::nullopt;
  /// Further settings: an encoded ConfigProto. The other members, and the numbers of threads in `session_config`, have priority over these
  /// settings, except if they are 0 or false. The device filters of the ConfigProto replace the default of `device_filters`; if
  /// `device_filters` is set, both apply.
  std::string config_proto = {};
};

/// Options of a `graph_session`.
struct graph_session_options {
  graph_operations operations = {};
  runtime_config runtime = {};
  session_target target = {};
};

/// The result of a step whose caller fetches nothing. It is empty.
struct graph_step {};

namespace detail {

class session_core;
struct call_plan;

/// Memory for the fetched values of runs, so that a run allocates nothing.
struct value_memory {
  std::size_t count = 0;                            // number of values of a run
  std::unique_ptr<std::vector<tensor>> spare = {};  // null while a run uses it
};

/// The fetched values of a run. Their memory belongs to the plan of the run. The destructor returns the memory to the plan.
/// @lifetime The session must outlive the values.
class fetched_values {
public:
  fetched_values() noexcept = default;
  /// Takes the memory `of_plan` until the destructor.
  explicit fetched_values(value_memory& of_plan) : all_(std::move(of_plan.spare)), from_(&of_plan) {
    if (all_ == nullptr) [[unlikely]] { all_ = std::make_unique<std::vector<tensor>>(of_plan.count); }
  }
  fetched_values(fetched_values&&) noexcept = default;
  fetched_values& operator=(fetched_values other) noexcept {
    std::swap(all_, other.all_);
    std::swap(from_, other.from_);
    return *this;
  }
  /// Deletes the values in TensorFlow's library. A value that is shared with a copy of its `tensor` stays until the copy is destroyed.
  ~fetched_values() {
    if (all_ != nullptr) { give_back(); }
  }

  [[nodiscard]] tensor* data() noexcept { return all_->data(); }
  [[nodiscard]] const tensor& operator[](std::size_t i) const noexcept { return (*all_)[i]; }

private:
  void give_back() noexcept;

  std::unique_ptr<std::vector<tensor>> all_;
  value_memory* from_ = nullptr;
};

}  // namespace detail

/// A session of TensorFlow over a graph. A fetch is a name ("loss:0" or "loss"), a handle, or `fetch<float>("loss:0")`. The key of a feed
/// is a name or a handle. All requests are checked against the graph before TensorFlow runs anything. Names, and the dtypes of fetches, are
/// checked once for each set of fetches, feeds and targets. Dtypes and shapes of fed values are checked in each run.
///
/// * If the caller of a run passes fetches or targets, the run executes these. Otherwise the run executes the train operation. The fetches
///   of hooks make no difference here.
/// * The global step is read in the same run, after all other operations of the run. If the graph has no global step, the session counts
///   its runs.
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
    detail::fetched_values values;
    const detail::call_plan* plan;
  };

  /// Opens a session of TensorFlow. Initialises nothing.
  /// @errors `not_found_error` if the options, the collections or the SaverDef name an operation that the graph does not have.
  ///   `invalid_argument_error` if such an operation is not of the required kind, or if the global step is not an integer.
  ///   `failed_precondition_error` if a name in the options is empty and its collection has several operations (except for `train_op`).
  ///   Failures of TensorFlow.
  explicit graph_session(const graph& over, graph_session_options options = {});
  explicit graph_session(std::shared_ptr<detail::graph_state> over, graph_session_options options);
  graph_session(graph_session&&) noexcept;
  graph_session& operator=(graph_session&&) noexcept;
  ~graph_session();

  /// Does one run. `args` are targets and feeds.
  /// @errors Before TensorFlow runs anything: `not_found_error` for an unknown name; `invalid_argument_error` for a fetch that has no
  ///   value, and for a wrong dtype or shape; `failed_precondition_error` if there is no train operation for a run without fetches and
  ///   targets, or if a tensor is fed twice. Failures of TensorFlow: the exception class for TensorFlow's code, with TensorFlow's text.
  template<class Request, class... Args>
  outcome_type run(const Request& request, Args&&... args) {
    auto& call = *call_;
    call.clear();
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
    if constexpr (std::is_convertible_v<const Fetch&, const char*>) {
      return value_in(outcome, static_cast<const char*>(fetch));
    } else {
      return detail::with_name(fetch, [&](std::string_view name) -> const tensor& { return value_in(outcome, name); });
    }
  }
  template<class T>
  [[nodiscard]] T read(const outcome_type& outcome, const typed_fetch<T>& fetch) const {
    return value_in(outcome, fetch.name).template as<T>();
  }

  /// Returns the global step that this session knows: its value after the last run, initialisation or restore of this session.
  [[nodiscard]] std::int64_t global_step() const noexcept { return step_; }
  /// Reads the global step from the graph and returns it. Other sessions on the same servers may have changed it since the last run. If the
  /// graph has no global step, returns `global_step()`. @errors Failures of TensorFlow.
  [[nodiscard]] std::int64_t read_global_step() const;
  /// Returns the variables that the graph's saver saves. If the graph has no saver, returns those of the collection `variables`. Reading a
  /// variable copies its elements out of the tensors that the last `pull` fetched. If no variable has the name `global_step`, the number of
  /// runs is added under this name.
  [[nodiscard]] variable_list variables();
  /// Fetches the values of all variables from TensorFlow, in one run. The tensors are released when the last copy of the result is
  /// destroyed.
  [[nodiscard]] std::shared_ptr<void> pull();
  /// Sends the values that were written to `variables()` to the graph, in one run. Then reads the global step.
  void push();

  /// Runs operations and returns the values of `fetches`. Calls no hooks, and does not change the global step that this session knows.
  /// @errors Like `run`.
  /// @threads Any, even during a run of the session.
  std::vector<tensor> run_apart(const std::vector<std::string>& fetches, const target_list& targets = {},
                                std::vector<named_feed> feeds = {}) const;
  /// Returns the number of sets of fetches, feeds and targets that were prepared. Each set costs TensorFlow several milliseconds.
  [[nodiscard]] std::size_t plan_count() const noexcept;
  /// Returns the names of the operations that are used, from the options or the collections. A name is empty if the default is used.
  [[nodiscard]] const graph_operations& operations() const noexcept;
  [[nodiscard]] std::shared_ptr<const detail::session_core> core() const noexcept;

  // The functions that make a session ready. The defaults of `scaffold<graph_session>` call them.

  /// Runs the init operation. If the graph was imported from a SavedModel with values, restores these values instead.
  /// @errors `failed_precondition_error` if the graph has variables to save, but neither an init operation nor a collection of variables.
  ///   Failures of TensorFlow.
  void init_variables();
  /// Runs the operation that initialises local variables and tables, if there is one. @errors Failures of TensorFlow.
  void init_local_variables();
  /// Returns the names that `ready_for_local_init_op` or its default returns. @errors Failures of TensorFlow.
  [[nodiscard]] std::vector<std::string> uninitialized_variables() const;
  /// Returns the names that `ready_op` or its default returns. If there are none, reads the global step. @errors Failures of TensorFlow.
  [[nodiscard]] std::vector<std::string> uninitialized_local_variables() const;

  /// Closes TensorFlow's session. Runs of other threads that wait in TensorFlow, for example for a queue, end with `cancelled_error`.
  /// @errors With a master: `deadline_exceeded_error` if its servers do not answer within the time-out.
  void close();

private:
  outcome_type run_call(bool has_caller_fetches, const run_options* options);
  static const tensor& value_in(const outcome_type& outcome, std::string_view name);
  static const tensor& value_in(const outcome_type& outcome, const char* name);  // faster, because it reads `name` once
  void read_step() const;

  std::shared_ptr<detail::session_core> core_;
  detail::graph_call* call_;  // of `core_`
  // Mutable: `uninitialized_local_variables` and `read_global_step` read the step from the graph and store it here.
  mutable std::int64_t step_ = 0;
};

static_assert(raw_session<graph_session> && stepwell::detail::has_pull<graph_session>);

}  // namespace stepwell::tensorflow
