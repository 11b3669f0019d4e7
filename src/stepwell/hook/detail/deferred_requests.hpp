// SPDX-License-Identifier: Apache-2.0
//
// Requests of hooks to a session, deferred until the boundary, and the failures of the works that execute them. Independent of the types of
// model and hooks.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hook/boundary_work.hpp"
#include "stepwell/hook/rollback_request.hpp"
#include "stepwell/hook/session_signals.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {
namespace summary {
class writer;
}
/// Throws `failed_precondition_error`: there can be no further run. Not inlined, because its callers are on the fast path.
/// @see contract RUN-1
[[noreturn]] void throw_after_end(bool is_closed);
/// Throws `aborted_error` for the rollback that a hook requested. The session handles it like a failure of the run, so that a rollback is a
/// recovery.
[[noreturn]] void throw_rollback(const rollback_request& asked);

/// The requests made during a step, and the works that execute them when the session processes the boundary.
/// @threads The session's thread, except `report`. The object returned by `signals` may be used on any thread.
class deferred_requests {
public:
  explicit deferred_requests(std::shared_ptr<clock> source) : clock_(std::move(source)) {}
  deferred_requests(const deferred_requests&) = delete;
  deferred_requests& operator=(const deferred_requests&) = delete;

  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return signals_; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return clock_; }

  /// Sets the name of the session, which is in its log messages.
  void set_name(std::string name) { name_ = std::move(name); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Sets the directory of the session's event files. `writer` returns their writer; null: a writer with default options.
  void set_event_output(std::string directory, std::function<std::shared_ptr<summary::writer>()> writer) {
    event_directory_ = std::move(directory);
    event_writer_ = std::move(writer);
  }
  [[nodiscard]] const std::string& event_directory() const noexcept { return event_directory_; }
  /// Returns the writer of this directory. Null if there is no directory.
  [[nodiscard]] std::shared_ptr<summary::writer> event_writer() const;

  /// Registers `work`, whose functions the session calls from now on. Does nothing if it is registered.
  void add_work(std::shared_ptr<boundary_work> work);
  /// Like add_work(), for the work of an object at the address `thing`. `make` is called once; the work is kept over recoveries.
  template<class Make>
  void add_work_for(const void* thing, Make&& make) {
    auto& kept = kept_works_[thing];
    if (!kept) { kept = std::forward<Make>(make)(); }
    add_work(kept);
  }
  /// Returns true for the first call with `thing` after each creation of the session.
  [[nodiscard]] bool claim(const void* thing);
  void request_save(boundary_work& work);
  /// Marks the state as bad because of `why`. It is not saved until a restore calls `accept_state`.
  void reject_state(std::string why) { rejected_ = std::move(why); }
  void accept_state() noexcept { rejected_.reset(); }
  [[nodiscard]] const std::optional<std::string>& rejected() const noexcept { return rejected_; }

  /// Requests a restore of the newest checkpoint, after all hooks of the step have run. `asked.answer` is called after the restore.
  void request_rollback(rollback_request asked) { rollback_ = std::move(asked); }
  [[nodiscard]] bool rollback_asked() const noexcept { return rollback_.has_value(); }
  [[nodiscard]] const std::optional<rollback_request>& rollback() const noexcept { return rollback_; }
  void drop_rollback() noexcept { rollback_.reset(); }

  /// Sets the recorder of the session's work until the end of the next boundary. Null: nothing is recorded.
  void trace_into(std::shared_ptr<trace_recorder> recorder) noexcept;
  /// Returns the current recorder, or null.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return trace_; }
  /// Returns the position that the recorder had when it was set.
  [[nodiscard]] std::uint64_t trace_begin() const noexcept { return trace_begin_; }
  /// Removes the recorder and notifies the works, if there is a recorder.
  void end_trace() noexcept;

  /// Sets the time for which a save may wait for earlier saves after a stop was requested.
  void set_grace_of_stop(clock::duration grace) noexcept { stop_grace_ = grace; }
  /// Returns `until` or the end of the process: the earlier of the two. If the end of the process has passed, one more grace begins,
  /// because a process that is still alive can still save.
  [[nodiscard]] deadline within_process(const deadline& until) const;
  /// Records that the session closes, and that the close must end at `until`.
  void begin_close(const deadline& until);
  /// Returns the time at which a wait that begins now must end, so that the last state can be saved after it. Never, unless a stop was
  /// requested, the session closes, or the process is about to end. A quarter of the grace is reserved for the save, or twice
  /// the expected duration of the save if that is longer.
  [[nodiscard]] deadline end_of_waits() const;

  /// Reads the epoch of the batch at which a source stands.
  struct epoch_reader {
    const void* source = nullptr;
    data::epoch_position (*read)(const void* source) = nullptr;
  };
  /// Sets the reader for the run in progress.
  void set_epoch_reader(const epoch_reader& reader) noexcept { epoch_ = reader; }
  /// Returns the epoch of the batch of the run in progress. Empty if there is no run, or if its batch has no epoch.
  [[nodiscard]] std::optional<data::epoch_position> epoch() const {
    return epoch_.source != nullptr ? std::optional(epoch_.read(epoch_.source)) : std::nullopt;
  }

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  /// Sets the directory that hooks use if they are given none. See `session_settings`.
  void set_directory(std::string directory) { directory_ = std::move(directory); }

  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return restored_from_; }
  void set_restored_from(std::optional<std::string> prefix) { restored_from_ = std::move(prefix); }
  /// Begins a creation of the session: hooks register their works again. Until `end_creation`, the previous works are still drained and
  /// flushed, too. Drops claims and requested saves.
  void begin_creation();
  void end_creation() noexcept;

  /// Returns true if the boundary has work to do.
  [[nodiscard]] bool due() const noexcept {
    if (!saves_.empty()) [[unlikely]] { return true; }
    return signals_->is_notified();
  }

  /// Processes events of background work, then the requested and the postponed saves. `with_state(is_last, save)` must call `save` with
  /// the state. It is called only if a save is due.
  /// @errors The first failure of background work or of a save. A failure of background work does not prevent the save.
  void act(function_ref<void(bool, function_ref<void(const boundary_state&)>)> with_state, const deadline& until);

  /// Starts the flush of all works. Returns a function that blocks until the flush is done; empty if there is nothing to flush.
  /// @see `boundary_work::start_flush`
  [[nodiscard]] std::function<void()> start_flush() const;

  /// Drops the saves requested in a step that failed.
  void drop_requests() noexcept { saves_.clear(); }

  /// Blocks until the pending work is done, at most until `until`. A recovery calls this function first, so that no newer checkpoint
  /// appears after it has chosen one.
  /// @errors The first failure of the pending work.
  /// @see D-2
  void drain(const deadline& until);

  /// Waits for all works, writes how the session ended, then flushes all works, even if one of them fails. Called at the close. If draining
  /// fails, the session has failed, regardless of `how`.
  /// @errors The first failure.
  void drain_and_flush(const deadline& until, run_ending ending);
  /// Detaches all works, which finish in the background. Called when the session is abandoned. Failures so far are logged.
  void detach() noexcept;
  /// Makes every work keep `hold` until all files that it has locked are released.
  void hold_until_released(const std::shared_ptr<void>& hold) const;
  /// Adds the metrics of all works, and the last preemption plan, to `all`. @threads Any.
  void report(session_metrics& all) const;
  /// Returns the newest values that the works have measured, in the order in which the works were registered.
  [[nodiscard]] std::vector<history_value> history() const;
  [[nodiscard]] deadline deadline_after(clock::duration grace) const;

private:
  void process_events();
  void save(const boundary_state& state, std::vector<boundary_work*> saves, const deadline& until);
  void save(const boundary_state& state, boundary_work& work, deadline until);
  [[nodiscard]] bool is_worth_saving(const boundary_state& state);
  [[nodiscard]] clock::duration without_last_save(clock::duration grace) const;
  [[nodiscard]] std::vector<std::shared_ptr<boundary_work>> all_works() const;

  std::shared_ptr<clock> clock_;
  std::string name_;
  std::string event_directory_;
  std::function<std::shared_ptr<summary::writer>()> event_writer_;
  std::shared_ptr<session_signals> signals_ = std::make_shared<session_signals>();
  mutable std::mutex works_mutex_;  // other threads read the works and the plan; the session's thread locks it to change them
  std::vector<std::shared_ptr<boundary_work>> works_;
  std::map<const void*, std::shared_ptr<boundary_work>> kept_works_;
  std::vector<std::shared_ptr<boundary_work>> former_works_;  // of the previous creation, until the next one has ended
  std::vector<boundary_work*> saves_;
  std::vector<const void*> claimed_;
  std::optional<std::string> rejected_;
  clock::duration stop_grace_ = clock::duration::max();
  std::optional<deadline> close_waits_;  // the end of waits; set when the session closes
  std::optional<preemption_plan> plan_;  // the most recent plan
  std::optional<rollback_request> rollback_;
  std::optional<std::string> restored_from_;
  std::string directory_;
  std::shared_ptr<trace_recorder> trace_;
  std::uint64_t trace_begin_ = 0;
  epoch_reader epoch_;
};

/// Shows the epoch of the batch at which `source` stands, during a run.
/// @lifetime `control` and `source` must outlive it.
class epoch_scope {
public:
  template<data::epoch_source Source>
  epoch_scope(deferred_requests& control, const Source& source) noexcept : control_(control) {
    constexpr auto read = [](const void* given) {
      const auto& from = *static_cast<const Source*>(given);
      return data::epoch_position{from.epoch(), from.is_last_of_epoch()};
    };
    control_.set_epoch_reader({&source, read});
  }
  epoch_scope(const epoch_scope&) = delete;
  epoch_scope& operator=(const epoch_scope&) = delete;
  ~epoch_scope() { control_.set_epoch_reader({}); }

private:
  deferred_requests& control_;
};

}  // namespace stepwell
