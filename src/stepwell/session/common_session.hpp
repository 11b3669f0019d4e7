// SPDX-License-Identifier: Apache-2.0
//
// What sessions of all kinds have in common: the functions that do not depend on the types of the model and the hooks.
#pragma once

#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/protocol/session_metrics.hpp"
#include "stepwell/protocol/session_signals.hpp"
#include "stepwell/protocol/watched_values.hpp"
#include "stepwell/session/detail/session_engine.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// The functions of every session: blocking, asynchronous or type-erased. Each function of a moved-from session throws
/// `failed_precondition_error`, except `came_from_hook`, which returns false.
class common_session {
public:
  common_session& operator=(const common_session&) = delete;

  /// Returns true if the loop should end: if a stop was requested, if a thread of the session had a failure from which the session does not
  /// recover, if the session could not recover, or if it is closed.
  /// @errors In a singular session, also inside an `any_session`: the first failure that a thread of the session reported.
  /// @threads Any.
  [[nodiscard]] bool should_stop() const {
    if (throws_failure_of_threads_) [[unlikely]] { core().check_threads(); }
    if (gate_->state().is_over()) [[unlikely]] { return core().should_stop(); }  // it may have been moved from
    return static_cast<session_engine&>(*gate_).is_stop_due();
  }
  /// Requests the loop to end after the current step, or before the next step if no step is running. The request cannot be withdrawn. The
  /// checkpoint of this step contains it: a later start of the program does no step, see `training_options::resume_after_stop`.
  /// @threads Any.
  void request_stop(std::string why = "the caller asked to stop");
  /// Returns the reason for the end of the loop. If the loop has not ended, and no stop was requested, the cause is `none`. @threads Any.
  [[nodiscard]] stepwell::stop_reason stop_reason() const { return core().why(); }
  /// Returns the number of steps done, including those of earlier runs of the program.
  /// @errors `failed_precondition_error` in an asynchronous session with a creator that has not created the raw session yet.
  [[nodiscard]] std::int64_t global_step() const { return core().global_step(); }
  /// Returns the metrics of the session, such as the number of recoveries. @threads Any.
  [[nodiscard]] session_metrics metrics() const { return core().metrics(); }
  /// Returns the newest values that the hooks of this session watch, such as the loss of `progress_hook`, the metrics of the last
  /// evaluation and the rate of `step_counter_hook`. Each value has the name that its hook displays, or the tag under which it is written.
  /// If two hooks watch a value of the same name, the newest one is returned. `progress_hook` and the NaN guards fetch newer values in the
  /// next run after this call; the values of other hooks are those of their last period. A recovery drops all values that were measured
  /// before it.
  /// @cost Nothing for the session, except that one run after each call fetches these values. @threads Any.
  [[nodiscard]] std::vector<history_value> watched() const { return core().requests().facts().watched->read(); }
  /// Returns the prefix of the checkpoint that was restored most recently: at the start, or in the last recovery. Empty if none was restored
  /// then.
  [[nodiscard]] const std::optional<std::string>& restored_from() const { return core().requests().facts().restored_from; }
  [[nodiscard]] bool is_closed() const { return core().is_closed(); }
  /// Returns true if `failure` is the last failure of the session, and a hook or the session's own work threw this exception object.
  /// Returns false if the model's `step`, the source or other code threw it. An `out_of_range_error` is a failure if this function returns
  /// true, and otherwise the end of the data.
  /// @see D-18
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const noexcept {
    return !gate_->is_moved_from() && core().came_from_hook(failure);
  }

protected:
  explicit common_session(detail::session_gate& gate) noexcept : gate_(&gate) {}
  common_session(common_session&& other) noexcept
      : gate_(std::exchange(other.gate_, &detail::moved_from_gate())), throws_failure_of_threads_(other.throws_failure_of_threads_) {}
  ~common_session() = default;

  [[nodiscard, gnu::always_inline]] detail::session_gate& gate() const noexcept { return *gate_; }
  /// @errors `failed_precondition_error` if this session was moved from.
  [[nodiscard]] session_engine& core() const {
    if (gate_->is_moved_from()) [[unlikely]] { detail::throw_moved_from(); }
    return static_cast<session_engine&>(*gate_);
  }
  void throw_failure_of_threads() noexcept { throws_failure_of_threads_ = true; }

private:
  friend class blocking_session;
  template<class, class>
  friend class any_async_session;

  detail::session_gate* gate_;
  bool throws_failure_of_threads_ = false;
};

/// The functions of every blocking session, in addition.
class blocking_session : public common_session {
public:
  /// Closes the session if `close` was not called, but logs failures instead of throwing them. If the destructor runs because of an
  /// exception, it acts like `abandon` instead: `end` of the hooks is not called, and no last checkpoint is made. In a child process made by
  /// `fork`, it does nothing: the session is that of the parent.
  /// @see contract CLOSE-5, D-17
  ~blocking_session() { leave(); }

  /// Returns a copy of the state that a checkpoint would contain now. Call this function between two steps. Use the copy for predictions,
  /// for an evaluation during the training, or to return to this state later. `restore(model, taken)` writes the copy `taken` into a model
  /// with the same variables.
  /// @errors `failed_precondition_error` in these cases: The session is closed. A hook rejected the state. The last run failed, in a hook
  /// or in the step. The last recovery failed. `resource_exhausted_error` if the memory cannot be allocated.
  /// @cost One copy of the variables, into a new block of memory of their size. The destructor of the snapshot frees the memory.
  [[nodiscard]] stepwell::snapshot snapshot() { return core().copy_state(std::nullopt); }
  /// Like `snapshot()`, but copies into a buffer of `pool`. The buffer returns to the pool when the snapshot is destroyed. Blocks until a
  /// buffer is free. Deadlocks if the caller itself holds every buffer.
  /// @cost One copy of the variables, into memory of the pool.
  [[nodiscard]] stepwell::snapshot snapshot(snapshot_pool pool);

  /// Makes a checkpoint now, regardless of periods: all hooks that save are requested to save. If the state of this step is saved already,
  /// no second checkpoint is made. Blocks until the checkpoint is durable. Returns the step that was saved.
  /// @errors `failed_precondition_error` if the session is closed, if a hook has requested a stop or rejected the state, if the last step
  ///   failed after it had begun, or if no hook saves. `deadline_exceeded_error` if the process is about to end and the checkpoint would not
  ///   be durable in time. Failures of the save.
  std::int64_t checkpoint_now();

  /// Calls `end` of the hooks, makes the last checkpoint, and waits for all I/O, at most for `stop_grace_period_secs`. Does
  /// nothing if the session is closed already.
  /// @errors The first failure of a hook's `end`, of background I/O, or of a thread. If recovery is on, a transient failure of a thread is
  ///   only logged. `deadline_exceeded_error` if the I/O does not end in time. The session is closed even if this function throws.
  ///   `failed_precondition_error` in a child process made by `fork`, in which nothing is closed, even if the session is closed already.
  /// @see D-15
  void close();
  /// Closes the session after the error `failure`. Calls `on_error` of the hooks, unless it was already called for this error. Does not
  /// call `end`, and makes no last checkpoint. Waits for pending I/O, at most for `stop_grace_period_secs`. Failures are
  /// logged. Used by `with` and similar functions. Does nothing if this session was moved from.
  void abandon(std::exception_ptr failure) noexcept;

protected:
  /// Starts the session.
  explicit blocking_session(std::unique_ptr<session_engine> core);
  blocking_session(blocking_session&& other) noexcept : common_session(std::move(other)) {}
  blocking_session& operator=(blocking_session&& other) noexcept;

private:
  void leave() noexcept;

  int exceptions_at_birth_ = std::uncaught_exceptions();
};

}  // namespace stepwell
