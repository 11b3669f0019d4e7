// SPDX-License-Identifier: Apache-2.0
//
// What hooks may ask of a session, kept until the boundary: the part of a session that knows neither model nor hooks.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/function_ref.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/hook/boundary.hpp"
#include "stepwell/hook/rollback_request.hpp"
#include "stepwell/hook/session_metrics.hpp"
#include "stepwell/hook/session_signals.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// Says why there can be no further run (contract RUN-1). Out of line: it stands beside the hot path.
[[noreturn]] void throw_after_end(bool is_closed);
/// The request of a hook as the failure of its run: recovery is the same path.
[[noreturn]] void throw_rollback(const rollback_request& asked);

/// A failure as the reason for the end of a loop; null where C++ cannot tell which. `is_of_data`: it came out of the raw
/// session or the source, where `out_of_range_error` is the end of the data.
[[nodiscard]] stop_reason reason_of(const std::exception_ptr& failure, bool is_of_data) noexcept;

/// Collects requests during a step and carries them out when the session says so.
/// @threads The session's thread, but for `signals`, which is shared with everybody.
class deferred_requests {
public:
  explicit deferred_requests(std::shared_ptr<clock> source);
  deferred_requests(const deferred_requests&) = delete;
  deferred_requests& operator=(const deferred_requests&) = delete;
  ~deferred_requests();

  [[nodiscard]] const std::shared_ptr<session_signals>& signals() const noexcept { return signals_; }
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return clock_; }

  /// The work is told of attention, draining and flushing from now on.
  void add_work(std::shared_ptr<boundary_work> work);
  /// The same for work that belongs to a thing several hooks may share: made once, and kept over recoveries.
  template<class Make>
  void add_work_for(const void* thing, Make&& make) {
    auto& kept = kept_work(thing);
    if (!kept) { kept = std::forward<Make>(make)(); }
    add_work(kept);
  }
  /// True for the first who claims `thing`: what is to be done once a session, however many hooks share the thing.
  [[nodiscard]] bool claim(const void* thing);
  void request_save(boundary_work& work);
  /// The state is bad: it is not saved, neither at the boundary nor at `end`, until something restores it.
  void reject_state(std::string why);
  void accept_state() noexcept;
  [[nodiscard]] const std::optional<std::string>& rejected() const noexcept { return rejected_; }

  /// Asks to go back to the newest checkpoint once all hooks of the step have run, and then for `answer`.
  void request_rollback(rollback_request asked);
  [[nodiscard]] bool rollback_asked() const noexcept { return rollback_.has_value(); }
  [[nodiscard]] const std::optional<rollback_request>& rollback() const noexcept { return rollback_; }
  void drop_rollback() noexcept;

  /// What the session does from here to the end of the next boundary goes to `recorder`; null: to nobody.
  void trace_into(std::shared_ptr<trace_recorder> recorder) noexcept;
  /// The recorder in force, or null.
  [[nodiscard]] const std::shared_ptr<trace_recorder>& trace() const noexcept { return trace_; }
  /// Its position when it came into force.
  [[nodiscard]] std::uint64_t trace_begin() const noexcept { return trace_begin_; }
  /// No recorder is in force any more; the works are told. Does nothing where there was none.
  void end_trace() noexcept;

  /// Once the process is told to end, nothing is begun that would not be on the disk so much later.
  void set_grace_of_process(std::optional<clock::duration> grace) noexcept { grace_ = grace; }
  /// When that is over, if the process was told to end and there is such a time.
  [[nodiscard]] std::optional<clock::time_point> end_of_process() const;
  /// `until`, or that.
  [[nodiscard]] deadline within_process(const deadline& until) const;

  /// The prefix of the checkpoint this session was restored from, if it was.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return restored_from_; }
  void set_restored_from(std::optional<std::string> prefix);
  /// The session is about to be made, for the first time or anew: hooks say again what they need. The works so far are
  /// drained and flushed at a close all the same, until the session is made.
  void begin_creation();
  void end_creation() noexcept;

  /// True when a boundary has something to do.
  [[nodiscard]] bool due() const noexcept { return !saves_.empty() || signals_->is_notified(); }

  /// Delivers what the background has to tell and carries out what was requested. `with_state(save)` calls `save` with the
  /// state; it is called only if a save is due. A failure that is delivered here does not prevent the save.
  void act(function_ref<void(function_ref<void(const boundary_state&)>)> with_state, const deadline& until);

  /// Starts the flush of all works. Returns a function that blocks until it is done, see `boundary_work::start_flush`.
  [[nodiscard]] std::function<void()> start_flush() const;

  /// Forgets what was requested in a step that failed.
  void drop_requests() noexcept { saves_.clear(); }

  /// Recovery: waits for what is under way, so that the newest checkpoint is the newest there will be (design D-2).
  void drain(const deadline& until);

  /// Closing: waits for all work, tells it how the session ended, then flushes it. Every work is drained and flushed; the first
  /// failure is thrown. A session whose work cannot be drained has failed.
  void drain_and_flush(const deadline& until, session_ending how);
  /// Abandoning: all works finish in the background. What failed there so far is logged.
  void detach() noexcept;
  /// Every work keeps `hold` until what it has locked is released.
  void hold_until_released(const std::shared_ptr<void>& hold) const;
  /// Adds what the works have to tell.
  void report(session_metrics& all) const;
  [[nodiscard]] deadline deadline_after(clock::duration grace) const;

private:
  [[nodiscard]] std::shared_ptr<boundary_work>& kept_work(const void* thing);
  void process_events();
  void save(const boundary_state& state, std::vector<boundary_work*> saves, bool process_ends, const deadline& until);
  [[nodiscard]] bool is_worth_saving(const boundary_state& state);
  void warn_not_saved() const;
  [[nodiscard]] std::vector<std::shared_ptr<boundary_work>> all_works() const;

  std::shared_ptr<clock> clock_;
  std::shared_ptr<session_signals> signals_;
  std::vector<std::shared_ptr<boundary_work>> works_;
  std::map<const void*, std::shared_ptr<boundary_work>> kept_works_;
  std::vector<std::shared_ptr<boundary_work>> former_works_;  // of the session before, while the next is not made
  std::vector<boundary_work*> saves_;
  std::vector<const void*> claimed_;
  std::optional<std::string> rejected_;
  std::optional<clock::duration> grace_;
  std::optional<preemption_plan> plan_;  // the last one
  std::optional<rollback_request> rollback_;
  std::optional<std::string> restored_from_;
  std::shared_ptr<trace_recorder> trace_;
  std::uint64_t trace_begin_ = 0;
};

}  // namespace stepwell
