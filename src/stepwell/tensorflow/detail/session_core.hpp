// SPDX-License-Identifier: Apache-2.0
//
// A session of TensorFlow: prepared plans of runs, and the runs. Private to this adapter.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/protocol/run_options.hpp"
#include "stepwell/tensorflow/detail/c_api.hpp"
#include "stepwell/tensorflow/detail/graph_state.hpp"
#include "stepwell/tensorflow/detail/saved_variables.hpp"
#include "stepwell/tensorflow/detail/status.hpp"
#include "stepwell/tensorflow/feeds.hpp"
#include "stepwell/tensorflow/graph_session.hpp"
#include "stepwell/tensorflow/tensor.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stepwell::tensorflow::detail {

/// A set of fetches, feeds and targets that TensorFlow has prepared, or will prepare at the first run.
struct run_plan {
  std::vector<c::output> outputs;  // sorted; the step is the last one, if there is one
  std::vector<c::output> feeds;    // sorted
  std::vector<c::operation*> targets;
  std::vector<dtype> types;  // of the outputs, except the step
  bool reads_step = false;
  bool may_alias = false;  // values may share memory with variables
};

/// The plan for a request with a given signature, and where its values are.
struct call_plan {
  struct named_value {
    std::string name;
    std::size_t index;  // in the values of an outcome: first those of the plan, then fed values that are fetched
  };
  struct checked_feed {
    std::string name;
    dtype type;
    std::optional<tensor_shape> shape;
    std::int64_t number = 0;  // of this feed among all of the process; 0: none
  };
  struct feed_of_plan {
    std::size_t index;    // in the feeds of the request
    std::int64_t number;  // that of `checked_feed`
  };
  const run_plan* plan = nullptr;
  std::vector<named_value> values;
  std::vector<checked_feed> feeds;         // in the order of the request
  std::vector<feed_of_plan> feed_order;    // in the order of `plan->feeds`
  std::vector<std::size_t> fetched_feeds;  // feeds of the request that are fetched, too
  // Memory of the runs, so that a run allocates nothing.
  std::vector<c::tensor*> fed;      // in the order of `plan->feeds`
  std::vector<c::tensor*> fetched;  // in the order of `plan->outputs`
  value_memory memory;
  bool has_run = false;  // then TensorFlow has prepared `plan`
};

/// A session of the library, which is deleted with its last owner.
struct session_handle {
  explicit session_handle(c::session* made) noexcept : raw(made) {}
  session_handle(const session_handle&) = delete;
  session_handle& operator=(const session_handle&) = delete;
  ~session_handle();

  c::session* raw;
};

/// An open session of the library. With a server, closing and deleting it wait at most for the time-out of its runs, because TensorFlow
/// waits for ever for a server that was stopped. A session that is abandoned then keeps its memory and a thread until its server answers,
/// or until the process ends.
class open_session {
public:
  open_session(const graph_state& graph, const graph_session_options& options);
  open_session(const open_session&) = delete;
  open_session& operator=(const open_session&) = delete;
  ~open_session();

  /// Runs `plan`-like parts. Values of outputs are stored in `values`. The run options and the memory for metadata may be null. With a
  /// server, ends within twice the time-out: TensorFlow applies its time-out when it runs something, but not when it prepares something on
  /// servers.
  /// @errors Failures of TensorFlow; `tried` begins their message. `deadline_exceeded_error` that names the tasks without an answer.
  void run(const std::vector<c::output>& feeds, const std::vector<tensor>& fed, const std::vector<c::output>& outputs,
           std::vector<c::tensor*>& values, const std::vector<c::operation*>& targets, std::string_view tried,
           const c::buffer* run_options = nullptr, c::buffer* metadata = nullptr) const;
  /// Throws the failure of a run. If it may come from a task that does not answer, names these tasks.
  [[noreturn]] void fail(const call_status& outcome, std::string_view tried) const;
  /// @errors `deadline_exceeded_error` that names the tasks without an answer, if the session is abandoned.
  void close();
  /// Returns the session of the library. @lifetime Valid as long as this object.
  [[nodiscard]] c::session* raw() const noexcept { return handle_->raw; }
  /// Returns true if runs have to flush denormal numbers.
  [[nodiscard]] bool flushes_denormals() const noexcept { return flushes_denormals_; }

private:
  [[noreturn]] void throw_abandoned(const std::string& tried, std::chrono::milliseconds waited, const std::string& abandoned) const;

  std::string master_;
  bool flushes_denormals_;
  std::chrono::milliseconds limit_{0};  // 0: none
  std::shared_ptr<session_handle> handle_;
};

/// The parts of a `graph_session` that its header does not show.
class session_core {
public:
  session_core(std::shared_ptr<graph_state> graph, graph_session_options options);

  /// Runs `call`. The global step before the run is `step`.
  graph_session::outcome_type run(bool has_caller_fetches, const run_options* options, std::int64_t step);

  /// Runs something besides the steps, from names. @threads Any.
  std::vector<tensor> run_apart(const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                                const std::vector<named_feed>& feeds, std::string_view tried) const;
  /// Runs operations besides the steps. @threads Any.
  std::vector<tensor> run_operations(const std::vector<c::output>& outputs, const std::vector<c::operation*>& targets,
                                     std::string_view tried) const;

  /// Returns the current global step, or nothing if the graph has none, or it is not initialised.
  [[nodiscard]] std::optional<std::int64_t> step() const;
  [[nodiscard]] bool has_step() const noexcept { return step_variable_.has_value(); }

  /// Returns the names of variables that are not initialised, by the operation `ready`, or else of these collections.
  [[nodiscard]] std::vector<std::string> uninitialized(const std::string& ready, const std::vector<std::string>& collections) const;

  std::shared_ptr<graph_state> graph;
  graph_session_options options;
  saved_variables saved;
  std::optional<open_session> session;  // opened by the constructor
  std::vector<c::operation*> init_ops;
  std::vector<c::operation*> local_init_ops;
  graph_call call;
  std::size_t plans_made = 0;

private:
  struct step_source {
    c::output variable;
    bool is_resource;
    dtype type;
  };

  void find_step();
  void find_operations();
  void check_type(const std::string& name, const std::string& option, std::initializer_list<dtype> types) const;
  std::vector<c::operation*> initializers(const std::string& name, const std::vector<std::string>& variables,
                                          const std::vector<std::string>& tables) const;
  call_plan& make_or_find_plan();
  void run_tensorflow(call_plan& how, const c::buffer* run_options, c::buffer* metadata);
  void prepare_and_run(call_plan& how, const c::buffer* run_options, c::buffer* metadata);
  [[noreturn]] void throw_no_train_op() const;
  [[nodiscard]] std::unique_ptr<call_plan> make(const std::string& signature);
  [[nodiscard]] const run_plan* find_or_make(std::vector<c::output> outputs, std::vector<c::output> feeds,
                                             std::vector<c::operation*> targets);
  [[nodiscard]] const run_plan* wider_plan(const run_plan& wanted) const;
  [[nodiscard]] bool is_harmless(const run_plan& wanted, const run_plan& wider) const;
  void convert_feed(const call_plan::checked_feed& wanted, std::size_t index);
  void check_feed(const call_plan::checked_feed& wanted, const tensor& fed) const;
  c::output make_step_read(const std::vector<c::operation*>& after, const std::string& key) const;

  std::optional<step_source> step_variable_;
  c::output step_read_{};
  std::unordered_map<std::string, std::unique_ptr<call_plan>> calls_;
  std::vector<std::unique_ptr<run_plan>> plans_;
  call_status status_;  // of all runs
};

}  // namespace stepwell::tensorflow::detail
