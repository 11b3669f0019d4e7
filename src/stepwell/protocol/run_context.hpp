// SPDX-License-Identifier: Apache-2.0
//
// The contexts that hooks receive: the context of the current run, and that of the session. A boundary is the place between two steps where
// the session does the work that hooks requested, such as a save.
#pragma once

#include "stepwell/base/log.hpp"
#include "stepwell/protocol/detail/boundary_requests.hpp"
#include "stepwell/protocol/raw_session.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// Information and requests that are available to hooks at every hook point except `begin`, for every type of model.
class session_requests {
public:
  /// Returns the clock of the session.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return requests_->facts().time; }
  /// Returns the name of the session. May be empty.
  [[nodiscard]] const std::string& name() const noexcept { return requests_->facts().name; }
  /// Returns the directory of the session's checkpoints. Empty if the session has none.
  [[nodiscard]] const std::string& directory() const noexcept { return requests_->facts().directory; }
  /// Returns the file system through which `directory` is changed. Null: the file system of the machine.
  [[nodiscard]] const std::shared_ptr<io::file_system>& file_system() const noexcept { return requests_->facts().files; }
  /// Returns the directory of the session's event files. Empty if the session has none.
  [[nodiscard]] const std::string& event_directory() const noexcept { return requests_->facts().event_directory; }
  /// Returns the writer of the event files in `event_directory`. Null if the session has no such directory.
  /// @errors Those of `summary::writer`.
  [[nodiscard]] std::shared_ptr<summary::writer> event_writer() const { return requests_->facts().event_writer(); }
  /// Logs `message` with the name of the session.
  void log(log_level level, std::string_view message) const {
    const log_scope named(name());
    stepwell::log(level, message);
  }
  /// Displays `text` under `name` in the progress of the session: `show("eval", "loss 0.12 at step 500")`. `text` replaces the previous
  /// text of this name. If `text` is empty, the name is no longer displayed.
  void show(std::string name, std::string text) const { requests_->signals()->show(std::move(name), std::move(text)); }
  /// Returns the names and texts that are displayed.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> shown() const { return requests_->signals()->shown(); }

  /// Returns the newest values that the hooks of this session watch. A hook publishes its values there with a `value_publisher`.
  [[nodiscard]] const std::shared_ptr<watched_values>& watched() const noexcept { return requests_->facts().watched; }
  /// Returns the metrics of the session.
  [[nodiscard]] session_metrics metrics() const { return requests_->facts().metrics ? requests_->facts().metrics() : session_metrics{}; }
  /// Notes that a hook will end the loop after the global step `step`, for displays of the remaining time. If several steps are noted, the
  /// earliest one is kept.
  void note_last_step(std::int64_t step) const noexcept {
    auto& known = requests_->facts().last_step;
    if (!known || step < *known) { known = step; }
  }
  /// Returns the step after which a hook will end the loop. Empty if it is not known.
  [[nodiscard]] std::optional<std::int64_t> last_step() const noexcept { return requests_->facts().last_step; }

  /// Notes, for displays, a condition that will end the loop. Replaces the condition of this name. If the condition is a global step, call
  /// `note_last_step` instead.
  void note_stop_condition(stop_condition condition) const {
    auto& all = requests_->facts().stop_conditions;
    std::erase_if(all, [&](const auto& one) { return one.name == condition.name; });
    all.push_back(std::move(condition));
  }
  /// Sets `reached` of the noted condition `name`. Does nothing if no condition of this name was noted.
  void note_stop_progress(std::string_view name, double reached) const noexcept {
    for (auto& one : requests_->facts().stop_conditions) {
      if (one.name == name) { one.reached = reached; }
    }
  }
  /// Returns the conditions that were noted, without the last step.
  [[nodiscard]] const std::vector<stop_condition>& stop_conditions() const noexcept { return requests_->facts().stop_conditions; }

  /// Returns the group of processes that train this model. Null: there is only this process.
  [[nodiscard]] const std::shared_ptr<const stepwell::group>& group() const noexcept { return requests_->facts().group; }

  /// Returns the prefix of the checkpoint that was restored at the start, or in the last recovery. Empty if no checkpoint was restored
  /// then.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return requests_->facts().restored_from; }

  /// Returns true if this checkpoint contains a stop, which ends the session unless `training_options::resume_after_stop` is set.
  [[nodiscard]] bool restored_stop() const noexcept { return requests_->facts().restored_stop; }

  /// Returns the epoch of the batch of this run, and whether the batch is the last one of its epoch. Empty outside of runs, in a run
  /// outside of a loop, and for a source without epochs (see `data::epoch_source`).
  [[nodiscard]] std::optional<data::epoch_position> epoch() const { return requests_->facts().epoch(); }

  /// Requests a stop: the loop ends before its next step. A later call of `run` throws `failed_precondition_error`. The checkpoint of this
  /// step contains a stop with the cause `requested`: a later start of the program does no step, see `training_options::resume_after_stop`.
  /// A hook that requests a stop with another cause must request it again, in `after_create_session`, if it follows from the restored state.
  void request_stop(stop_reason why = {stop_cause::requested, "requested by a hook"}) const {
    requests_->signals()->request_stop_by_hook(std::move(why));
  }
  void request_stop(std::string why) const { request_stop({stop_cause::requested, std::move(why)}); }
  [[nodiscard]] bool stop_requested() const noexcept { return requests_->signals()->stop_requested(); }
  /// Returns the latest time until which a hook may wait, so that enough time is left to save the state. There is a limit only if a stop
  /// was requested, the session is closing, or the process is about to end. If a stop is requested during the wait, the deadline becomes
  /// earlier; see `session_signals::wait_with_stop`.
  [[nodiscard]] deadline end_of_waits() const { return requests_->limits().end_of_waits(); }
  /// Returns the end of a wait that should end at `until`. If `until` never passes, returns `end_of_waits()`. Otherwise returns `until` or,
  /// if the process has received a signal since the session began to close, the end of the process if that is earlier.
  [[nodiscard]] deadline end_of_waits(const deadline& until) const {
    return until.remaining() == clock::duration::max() ? end_of_waits() : requests_->limits().within_close(until);
  }

  /// Requests a save: at the next boundary, after all hooks of this step have been called, the session passes the state to `work`.
  /// @lifetime `work` must live until this boundary. Also register `work` with `add_work`, which keeps `work` alive and makes the session
  ///    wait for the save at the close.
  void request_save(boundary_work& work) const { requests_->request_save(work); }
  /// Marks the state as bad, with the reason `why`. A bad state is saved neither at a boundary nor at the close. The mark is removed by
  /// `accept_state` and by a recovery.
  void reject_state(std::string why) const { requests_->reject_state(std::move(why)); }
  /// Removes the mark that `reject_state` has set.
  void accept_state() const noexcept { requests_->accept_state(); }

  /// Requests a rollback: after all hooks of this run have been called, the session recovers, and restores the newest checkpoint. The
  /// effects of the run are lost. The rollback counts as a recovery in the limit of the session's retry policy. If recovery is turned off
  /// in the session, the run throws `aborted_error` to its caller instead. In a worker, the run throws `failed_precondition_error`, because
  /// only the chief can restore the model.
  void request_rollback(rollback_request asked) const { requests_->request_rollback(std::move(asked)); }

  /// Records the activities of the session in `recorder`, from now to the end of the next boundary: calls of hooks, the run, copies and
  /// writes, and every `trace_span` opened inside of these. Call this function in `before_run` to record this run. There is one recorder at
  /// a time: a later call replaces the recorder. When the recording ends, `end_trace` of each registered `boundary_work` is called. This
  /// function has an effect only in sessions with a hook whose `before_run` may return `run_options`. In other sessions, it has an effect
  /// only on runs whose caller passes `run_options`.
  void trace_into(std::shared_ptr<trace_recorder> recorder) const noexcept { requests_->trace_into(std::move(recorder)); }
  /// Returns the current recorder, or null.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return requests_->trace(); }

  /// Registers `work`: from now on, the session calls the functions of `work` at boundaries and at the close.
  void add_work(std::shared_ptr<boundary_work> work) const { requests_->works().add(std::move(work)); }
  /// Registers the work of an object `thing` that several hooks may share, for example a writer. `make()` creates the work. The session
  /// calls `make` once for each `thing`, and keeps the work over recoveries.
  template<class Make>
  void add_work_for(const void* thing, Make&& make) const {
    requests_->works().add_for(thing, std::forward<Make>(make));
  }
  /// Calls `write_records` of each registered work.
  void write_records() const { requests_->works().write_records(); }
  /// Returns true for the first call with `thing` after each creation of the session, and false for later calls. If several hooks share an
  /// object, for example a writer, the hook for which `claim` returns true initialises the object.
  [[nodiscard]] bool claim(const void* thing) const { return requests_->works().claim(thing); }
  /// Returns the signals of the session. Background threads use the signals to report a failure, to request that the session calls
  /// `boundary_work::process_events`, or to request a stop.
  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return requests_->signals(); }

protected:
  explicit session_requests(boundary_requests& requests) noexcept : requests_(&requests) {}

private:
  boundary_requests* requests_;
};

/// `session_requests` with access to the raw session.
template<class Raw>
class session_handle : public session_requests {
public:
  session_handle(Raw& raw, boundary_requests& requests) noexcept : session_requests(requests), raw_(&raw) {}

  /// Returns the raw session. Runs made on it directly call no hooks.
  [[nodiscard]] Raw& raw_session() const noexcept { return *raw_; }
  /// Returns the number of steps done so far.
  [[nodiscard]] std::int64_t global_step() const noexcept { return raw_->global_step(); }

private:
  Raw* raw_;
};

/// The context of one run. `before_run` and `after_run` of all hooks receive the same object; `on_error` receives another one. A context is
/// not copyable: a hook that takes it by value does not compile.
/// @lifetime Valid during the call of the hook point.
template<class Raw>
class run_context : public session_handle<Raw> {
public:
  run_context(Raw& raw, boundary_requests& requests, int attempt) noexcept
      : session_handle<Raw>(raw, requests), global_step_(raw.global_step()), attempt_(attempt) {}
  run_context(const run_context&) = delete;
  run_context& operator=(const run_context&) = delete;

  /// Returns the global step before this run in `before_run`, the global step after this run in `after_run`, and the current global step in
  /// `on_error`. At each of these points all hooks get the same value, even if in the meantime a hook, or another session that trains the
  /// same model, does a step.
  [[nodiscard]] std::int64_t global_step() const noexcept { return global_step_; }
  /// In `before_run`: returns true if this run is known to be the last one, because it does the step `last_step()`. False if it is not known,
  /// and always if a run of this session may do no step or several ones: over a graph of TensorFlow, a raw session of the user, or a model that
  /// counts its steps itself, and in an evaluation.
  [[nodiscard]] bool is_last_run() const noexcept { return detail::counts_each_run<Raw> && this->last_step() == global_step_ + 1; }
  /// Sets the global step after the run. Called by the session, not by hooks.
  void come_to(std::int64_t step) noexcept { global_step_ = step; }

  /// Returns the number of the attempt. In the first step of a loop after a recovery, and in a `run` that a recovery repeats, the number is
  /// 1 plus the number of recoveries since the session last did a step that it had not done before. In all other runs, and in the runs of a
  /// step function, the number is 1.
  [[nodiscard]] int attempt() const noexcept { return attempt_; }

private:
  std::int64_t global_step_;
  int attempt_;
};

}  // namespace stepwell
