// SPDX-License-Identifier: Apache-2.0
//
// The contexts that hooks receive: the current run, and the session.
#pragma once

#include "stepwell/base/log.hpp"
#include "stepwell/hook/detail/deferred_requests.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// Information and requests that are available to hooks at every point, for every type of model.
class session_requests {
public:
  /// Returns the clock of the session.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return control_->time(); }
  /// Returns the name of the session. May be empty.
  [[nodiscard]] const std::string& name() const noexcept { return control_->name(); }
  /// Returns the directory of the session's checkpoints. Empty if the session has none.
  [[nodiscard]] const std::string& directory() const noexcept { return control_->directory(); }
  /// Returns the directory of the session's event files. Empty if the session has none.
  [[nodiscard]] const std::string& event_directory() const noexcept { return control_->event_directory(); }
  /// Returns the writer of the event files in `event_directory`. Null if the session has none.
  /// @errors Those of `summary::writer`.
  [[nodiscard]] std::shared_ptr<summary::writer> event_writer() const { return control_->event_writer(); }
  /// Logs `message` with the name of the session.
  void log(log_level level, std::string_view message) const;
  /// Displays `text` under `name` in the progress of the session: `show("eval", "loss 0.12 at step 500")`. It replaces the previous text of
  /// this name. An empty text removes it.
  void show(std::string name, std::string text) const { control_->signals()->show(std::move(name), std::move(text)); }
  /// Returns the names and texts that are displayed.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> shown() const { return control_->signals()->shown(); }

  /// Returns the prefix of the checkpoint from which this session was restored. Empty if no checkpoint was restored.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return control_->restored_from(); }

  /// Returns the epoch of the batch of this run, and whether the batch is the last one of its epoch. Empty in a run outside of a loop, and
  /// for a source without epochs (see `data::epoch_source`).
  [[nodiscard]] std::optional<data::epoch_position> epoch() const { return control_->epoch(); }

  /// Requests the loop to end after this step.
  void request_stop(stop_reason why = {stop_cause::requested, "requested by a hook"}) const;
  void request_stop(std::string why) const;
  [[nodiscard]] bool stop_requested() const noexcept { return control_->signals()->stop_requested(); }

  /// Requests a save: at the next boundary, after all hooks of this step have run, the session passes the state to `work`.
  /// @lifetime `work` must live until then. Register `work` with `add_work`, too: this keeps `work` alive, and the session then waits for
  ///    the save at the close.
  void request_save(boundary_work& work) const { control_->request_save(work); }
  /// Marks the state as bad. A bad state is saved neither at the boundary nor at the close.
  void reject_state(std::string why) const;
  /// Marks the state as good again, after `reject_state`.
  void accept_state() const noexcept { control_->accept_state(); }

  /// Requests a rollback: after all hooks of this run have been called, the session restores the newest checkpoint, in the same way as in a
  /// recovery. The effects of the run are lost. If recovery is turned off in the session, the run throws `aborted_error` to its caller
  /// instead.
  void request_rollback(rollback_request asked) const;

  /// Records the activities of the session in `recorder`, from now to the end of the next boundary: calls of hooks, the run, copies and
  /// writes, and every `trace_span` opened inside of them. Call it in `before_run` to record this run. There is one recorder at a time: a
  /// later call replaces it. When the recording ends, `end_trace` of each registered `boundary_work` is called. This function has an effect
  /// only in sessions with a hook whose `before_run` may return `run_options`. Other sessions contain no code for traces.
  void trace_into(std::shared_ptr<trace_recorder> recorder) const noexcept;
  /// Returns the current recorder, or null.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return control_->trace(); }

  /// Registers `work`: from now on, the session calls the functions of `work` at boundaries and at the close.
  void add_work(std::shared_ptr<boundary_work> work) const;
  /// Registers the work of an object `thing` that several hooks may share, for example a writer. `make()` creates the work; it is called
  /// once for each `thing`.
  template<class Make>
  void add_work_for(const void* thing, Make&& make) const {
    control_->add_work_for(thing, std::forward<Make>(make));
  }
  /// Returns true for the first call with `thing`, and false for later calls, until the session is created again. Hooks that share an
  /// object, for example a writer, use it to select the one that initialises the object.
  [[nodiscard]] bool claim(const void* thing) const { return control_->claim(thing); }
  /// Returns the signals of the session. Background threads use the signals to report a failure, to request that the session calls
  /// `boundary_work::process_events`, or to request a stop.
  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return control_->signals(); }

protected:
  explicit session_requests(deferred_requests& control) noexcept : control_(&control) {}

private:
  deferred_requests* control_;
};

/// `session_requests` with access to the raw session.
template<class Raw>
class session_handle : public session_requests {
public:
  session_handle(Raw& raw, deferred_requests& control) noexcept : session_requests(control), raw_(&raw) {}

  /// Returns the raw session. Runs made on it directly call no hooks.
  [[nodiscard]] Raw& raw_session() const noexcept { return *raw_; }
  /// Returns the number of steps done so far.
  [[nodiscard]] std::int64_t global_step() const noexcept { return raw_->global_step(); }

private:
  Raw* raw_;
};

/// The context of one run. `before_run`, `after_run` and `on_error` of all hooks receive the same object. It is not copyable: a hook that
/// takes it by value does not compile.
/// @lifetime Valid during the call.
template<class Raw>
class run_context : public session_handle<Raw> {
public:
  run_context(Raw& raw, deferred_requests& control, int attempt) noexcept
      : session_handle<Raw>(raw, control), global_step_(raw.global_step()), attempt_(attempt) {}
  run_context(const run_context&) = delete;
  run_context& operator=(const run_context&) = delete;

  /// Returns the current global step in `before_run`, and the global step after this run in `after_run`. All hooks get the same value, even
  /// if in the meantime a hook, or another session that trains the same model, does a step.
  [[nodiscard]] std::int64_t global_step() const noexcept { return global_step_; }
  /// Sets the global step after the run. Called by the session, not by hooks.
  void come_to(std::int64_t step) noexcept { global_step_ = step; }

  /// Returns the number of the attempt. In the first step after a recovery, it is 1 plus the number of recoveries without progress;
  /// otherwise it is 1.
  [[nodiscard]] int attempt() const noexcept { return attempt_; }

private:
  std::int64_t global_step_;
  int attempt_;
};

}  // namespace stepwell
