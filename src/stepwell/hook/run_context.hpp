// SPDX-License-Identifier: Apache-2.0
//
// What a hook holds while it is called: the run it watches, and the session it belongs to.
#pragma once

#include "stepwell/hook/detail/session_control.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// What hooks may know and ask at any point, whatever the model.
class session_requests {
public:
  /// The clock of the session.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return control_->time(); }
  /// The prefix of the checkpoint that this session was restored from, if it was.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return control_->restored_from(); }

  /// Asks the loop to end after this step.
  void request_stop(stop_reason why = {stop_cause::requested, "requested by a hook"}) const;
  void request_stop(std::string why) const;
  [[nodiscard]] bool stop_requested() const noexcept { return control_->signals()->stop_requested(); }

  /// Asks the session to hand the state to `work` at the next boundary, once all hooks have run.
  /// @lifetime `work` must live until then; give it to `add_work` too.
  void request_save(boundary_work& work) const { control_->request_save(work); }
  /// Says that the state is bad: it will not be saved, neither at the boundary nor at `end`.
  void reject_state(std::string why) const;
  /// What was bad is good again.
  void accept_state() const noexcept { control_->accept_state(); }

  /// Asks to go back to the newest checkpoint, once all hooks of this run have been called: the path of recovery
  /// (design section 6). What the run did is lost; a session that does not recover throws `aborted_error` to its caller.
  void request_rollback(rollback_request asked) const;

  /// Has `recorder` collect what the session does from here to the end of the next boundary: the points of hooks, the run,
  /// copies and writes, and whatever opens a `trace_span` below them; in `before_run` that is this run from here on. One
  /// recorder at a time: the last who asks. When it is over works are told (`boundary_work::end_trace`).
  /// Heeded in a session where some hook's `before_run` may return `run_options`; others have no code for it.
  void trace_into(std::shared_ptr<trace_recorder> recorder) const noexcept;
  /// The recorder in force, or null.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return control_->trace(); }

  /// The session tells `work` of attention, and drains and flushes it when it closes.
  void add_work(std::shared_ptr<boundary_work> work) const;
  /// The same for work that belongs to a thing which several hooks may share, e.g. a writer: `make()` is called once.
  template<class Make>
  void add_work_for(const void* thing, Make&& make) const {
    control_->add_work_for(thing, std::forward<Make>(make));
  }
  /// True for the first hook of this session that claims `thing`, e.g. a writer that several share.
  [[nodiscard]] bool claim(const void* thing) const { return control_->claim(thing); }
  /// For threads in the background: failures, attention, stop.
  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return control_->signals(); }

protected:
  explicit session_requests(session_control& control) noexcept : control_(&control) {}

private:
  session_control* control_;
};

/// The same, and the raw session.
template<class Raw>
class session_handle : public session_requests {
public:
  session_handle(Raw& raw, session_control& control) noexcept : session_requests(control), raw_(&raw) {}

  /// The raw session: runs made on it call no hook.
  [[nodiscard]] Raw& raw_session() const noexcept { return *raw_; }
  /// Steps done so far.
  [[nodiscard]] std::int64_t global_step() const noexcept { return raw_->global_step(); }

private:
  Raw* raw_;
};

/// One run, seen from a hook: given to `before_run`, `after_run` and `on_error`, the same object each time.
/// Not copyable, so that a hook that takes it by value does not compile.
/// @lifetime Valid during the call.
template<class Raw>
class run_context : public session_handle<Raw> {
public:
  run_context(Raw& raw, session_control& control, int attempt) noexcept
      : session_handle<Raw>(raw, control), global_step_(raw.global_step()), attempt_(attempt) {}
  run_context(const run_context&) = delete;
  run_context& operator=(const run_context&) = delete;

  /// In `before_run` the step that the session stands at, in `after_run` the one that this run came to: the same for all hooks,
  /// whatever one of them, or another session at the same master, steps meanwhile.
  [[nodiscard]] std::int64_t global_step() const noexcept { return global_step_; }
  /// The run is done. For those who drive it.
  void come_to(std::int64_t step) noexcept { global_step_ = step; }

  /// 1 for the first try of this run, one more after each recovery.
  [[nodiscard]] int attempt() const noexcept { return attempt_; }

private:
  std::int64_t global_step_;
  int attempt_;
};

}  // namespace stepwell
