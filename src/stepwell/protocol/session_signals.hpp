// SPDX-License-Identifier: Apache-2.0
//
// Signals to a session from hooks, from other threads and from the caller: stop requests with their reasons, requests for a recovery, and
// failures of background work. The session processes them at its boundary, the place between two steps.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// The kind of reason why the loop ended. `detail::scope_of` decides by the cause whether a later start of the program ends at once, too.
enum class stop_cause {
  none,         ///< The loop has not ended.
  requested,    ///< `request_stop` was called. `stop_reason::text` is the text that was passed to it. Checkpoints contain this stop.
  last_step,    ///< The last requested step is done.
  end_of_data,  ///< The source has no more batches.
  nan,          ///< A watched value is not finite.
  no_progress,  ///< A watched value no longer improves (early stopping).
  criterion,    ///< A criterion on the state holds (`stop_when`).
  signal,       ///< A signal requested the process to end.
  stop_token,   ///< The stop token of the application requested a stop.
  deadline,     ///< The time limit has expired.
  error,        ///< A failure. The session has thrown it, or will throw it.
  closed,       ///< The session was closed.
};

[[nodiscard]] constexpr std::string_view to_string(stop_cause cause) noexcept {
  switch (cause) {
    case stop_cause::none: return "none";
    case stop_cause::requested: return "requested";
    case stop_cause::last_step: return "last_step";
    case stop_cause::end_of_data: return "end_of_data";
    case stop_cause::nan: return "nan";
    case stop_cause::no_progress: return "no_progress";
    case stop_cause::criterion: return "criterion";
    case stop_cause::signal: return "signal";
    case stop_cause::stop_token: return "stop_token";
    case stop_cause::deadline: return "deadline";
    case stop_cause::error: return "error";
    case stop_cause::closed: return "closed";
  }
  return "none";
}

namespace detail {

/// All values of `stop_cause`.
inline constexpr std::array all_stop_causes{stop_cause::none,       stop_cause::requested,   stop_cause::last_step, stop_cause::end_of_data,
                                            stop_cause::nan,        stop_cause::no_progress, stop_cause::criterion, stop_cause::signal,
                                            stop_cause::stop_token, stop_cause::deadline,    stop_cause::error,     stop_cause::closed};

/// What a stop belongs to. This decides what a recovery and a later start of the program do with it.
enum class stop_scope {
  step,     ///< The state of its step: the checkpoint of this step contains the stop, and a session that restores it does no step.
  state,    ///< Every state from which it follows: its hook finds it again in a restored state. No checkpoint contains it.
  process,  ///< This process only: a later start continues the training. No checkpoint contains it.
};

[[nodiscard]] constexpr stop_scope scope_of(stop_cause cause) noexcept {
  switch (cause) {
    case stop_cause::requested: return stop_scope::step;
    case stop_cause::last_step:
    case stop_cause::no_progress:
    case stop_cause::criterion: return stop_scope::state;
    case stop_cause::none:
    case stop_cause::end_of_data:  // the restored position of the source says it
    case stop_cause::nan:          // its state is rejected, so no checkpoint is made of it
    case stop_cause::signal:
    case stop_cause::stop_token:
    case stop_cause::deadline:
    case stop_cause::error:
    case stop_cause::closed: return stop_scope::process;
  }
  return stop_scope::process;
}

}  // namespace detail

/// The cause of a stop, and one sentence that describes it.
struct stop_reason {
  stop_cause cause = stop_cause::none;
  std::string text = {};
};

/// Flags that the loop checks once for each step, and the data that belongs to the flags. The object is owned by shared pointers, because
/// background writers that use it may outlive the session.
/// @threads All functions may be called on any thread.
class session_signals {
public:
  /// Requests the loop to end. Only the first reason is kept, with two exceptions: an error replaces a reason that is not an error, and
  /// `nan` replaces a stop that follows from the state, such as `last_step`.
  void request_stop(stop_reason why) { stop(std::move(why), stop_bit); }
  /// Requests the loop to end, on behalf of a hook. A later `run` of the session throws. In contrast, `request_stop` does not prevent a
  /// later run: another thread may call `request_stop` between the caller's check of `should_stop` and the run, and this run must not fail.
  /// @see contract RUN-1
  void request_stop_by_hook(stop_reason why) { stop(std::move(why), stop_bit | hook_bit); }
  /// Returns the first requested stop that belongs to the state of its step, also if another stop came before it. Checkpoints contain it.
  /// Empty if there is none.
  [[nodiscard]] std::optional<stop_reason> stop_of_step() const {
    const detail::mutex_lock lock(mutex_);
    return of_step_;
  }
  /// Withdraws a stop that follows from the state, before a recovery restores an earlier state: the causes `last_step`, `no_progress` and
  /// `criterion`. Their hooks request it again if it also follows from the restored state, or from a later one. Stops for other causes persist.
  /// @see D-12
  void withdraw_stop_of_state() {
    const detail::mutex_lock lock(mutex_);
    if (!is_of_state(why_)) { return; }
    why_ = std::exchange(next_why_, {});
    if (why_.cause != stop_cause::none) { return; }
    stopped_for_others_ = std::stop_source();
    bits_.fetch_and(~(stop_bit | hook_bit), std::memory_order_acq_rel);
  }
  /// Requests a stop, and a save at the next boundary, because the process will be ended. `now` is the current time of the session's clock.
  void end_process(std::string why, clock::time_point now) {
    {
      const detail::mutex_lock lock(mutex_);
      if (!process_ends_) { process_ends_ = now; }
      asked_by_ = why;
    }
    stop({stop_cause::signal, std::move(why)}, stop_bit | save_bit | notified_bit);
    process_ends_for_others_.request_stop();
  }
  /// Returns the time of the first call of `end_process`. Empty before that call.
  [[nodiscard]] std::optional<clock::time_point> process_ends() const {
    const detail::mutex_lock lock(mutex_);
    return process_ends_;
  }
  /// Sets the time within which all data must become durable after `end_process`. Called before other threads use this object.
  void set_grace_of_process(std::optional<clock::duration> grace) noexcept { grace_ = grace; }
  [[nodiscard]] const std::optional<clock::duration>& grace_of_process() const noexcept { return grace_; }
  /// Returns the time at which the process ends: the time of the call of `end_process` plus the grace. Empty if `end_process` was not
  /// called, or if no grace is set.
  [[nodiscard]] std::optional<clock::time_point> end_of_process() const {
    const auto since = grace_ ? process_ends() : std::nullopt;
    if (!since) { return std::nullopt; }
    return *grace_ < clock::time_point::max() - *since ? *since + *grace_ : clock::time_point::max();
  }
  /// Returns the time until which the commit of a checkpoint waits for other files. If the process is about to end, this is a quarter of
  /// the grace before its end, so that the commit itself is in time. Otherwise, the wait has no limit.
  [[nodiscard]] clock::time_point end_of_commit_waits() const {
    const auto end = end_of_process();
    return end && *end != clock::time_point::max() ? *end - *grace_ / 4 : clock::time_point::max();
  }
  /// Returns a token for which a stop is requested by `end_process`.
  [[nodiscard]] std::stop_token process_end_token() const noexcept { return process_ends_for_others_.get_token(); }
  /// Waits for an event, at most until the time that `until()` returns. Calls `wait(time, stop)`, which blocks until the event has
  /// happened, and returns true then. It returns false when `time` is reached or a stop is requested for the token `stop`. If a stop of the
  /// session is requested or `end_process` is called during the wait, the time may become earlier; `until` and `wait` are then called
  /// again. Returns true if the event has happened, and false if the time was reached.
  template<class Until, class Wait>
  bool wait_with_stop(Until until, Wait wait) const {
    for (;;) {
      const auto sooner = stop_requested() ? (process_ends() ? std::stop_token() : process_end_token()) : stop_token();
      if (wait(until(), sooner)) { return true; }
      if (!sooner.stop_requested()) { return false; }
    }
  }
  /// Returns true in the first call after `end_process`; the caller should then save the state. Returns false in all other calls.
  [[nodiscard]] bool take_save_for_end() noexcept { return (bits_.fetch_and(~save_bit, std::memory_order_acq_rel) & save_bit) != 0; }
  /// Requests a checkpoint at the end of the current step, or of the next step if no step is running. All hooks that save are requested to
  /// save.
  void request_checkpoint() noexcept { bits_.fetch_or(checkpoint_request_bit | notified_bit, std::memory_order_release); }
  /// Returns true in the first call after `request_checkpoint`. Returns false in all other calls.
  [[nodiscard]] bool take_checkpoint_request() noexcept {
    return (bits_.fetch_and(~checkpoint_request_bit, std::memory_order_acq_rel) & checkpoint_request_bit) != 0;
  }
  /// Appends `plan`, the decision whether the state is saved, to the text of `why()`. Replaces an earlier plan. Has an effect only if the
  /// stop was requested by `end_process`.
  void note_plan(std::string_view plan) {
    const detail::mutex_lock lock(mutex_);
    if (why_.cause == stop_cause::signal) { why_.text = asked_by_ + "; " + std::string(plan); }
  }
  [[nodiscard]] bool stopped_by_hook() const noexcept { return (bits_.load(std::memory_order_relaxed) & hook_bit) != 0; }
  [[nodiscard]] bool stop_requested() const noexcept { return (bits_.load(std::memory_order_acquire) & stop_bit) != 0; }
  /// Returns a token for blocking calls outside this class. A stop is requested for the token when a stop of the session is requested.
  /// After `withdraw_stop_of_state`, a new token is needed.
  [[nodiscard]] std::stop_token stop_token() const {
    const detail::mutex_lock lock(mutex_);
    return stopped_for_others_.get_token();
  }
  /// Blocks until a stop is requested or `interrupt` is called, at most until `when`. Returns false if `when` was reached first.
  bool wait_for_stop(clock& time, clock::time_point when) {
    detail::mutex_lock lock(mutex_);
    return time.wait_until(lock, stopped_, when, [this] { return stop_requested() || interrupted(); });
  }

  /// Interrupts the creation of the session: if the creation is waiting for the chief or for a checkpoint, or begins such a wait later, it
  /// throws `cancelled_error`. An interruption is not a stop: the session can be created after `clear_interruption`.
  void interrupt() {
    detail::mutex_lock lock(mutex_);
    bits_.fetch_or(interrupt_bit, std::memory_order_release);
    auto others = interrupted_for_others_;
    lock.unlock();
    stopped_.notify_all();
    others.request_stop();
  }
  void clear_interruption() {
    const detail::mutex_lock lock(mutex_);
    if (interrupted_for_others_.stop_requested()) { interrupted_for_others_ = std::stop_source(); }
    bits_.fetch_and(~interrupt_bit, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool interrupted() const noexcept { return (bits_.load(std::memory_order_acquire) & interrupt_bit) != 0; }
  /// Returns a token for blocking calls outside this class. `interrupt` requests a stop for the token. If an interruption is already in
  /// effect, the token is stopped from the beginning. After `clear_interruption`, a new token is needed.
  [[nodiscard]] std::stop_token interruption_token() const {
    const detail::mutex_lock lock(mutex_);
    return interrupted_for_others_.get_token();
  }

  /// Requests a recovery before the next run, because one of the session's threads had a transient failure.
  /// @see contract WRAP-4
  void ask_to_recover() noexcept { bits_.fetch_or(recover_bit, std::memory_order_release); }
  void recovered() noexcept { bits_.fetch_and(~recover_bit, std::memory_order_acq_rel); }
  /// Returns false if a hook has requested a stop, if a recovery was requested, or if a work holds a copy of the state. Otherwise returns
  /// true: a run may begin.
  [[nodiscard]] bool clear_to_run() const noexcept {
    return (bits_.load(std::memory_order_relaxed) & (hook_bit | recover_bit | held_bit)) == 0;
  }
  /// Like `clear_to_run`, but also returns false after any request to stop: the next step of a loop may begin.
  [[nodiscard]] bool clear_to_loop() const noexcept {
    return (bits_.load(std::memory_order_acquire) & (stop_bit | hook_bit | recover_bit | held_bit)) == 0;
  }
  /// Records that a work holds a copy of the state until the body of the loop has ended. @see `boundary_work::end_body`
  void note_held() noexcept { bits_.fetch_or(held_bit, std::memory_order_release); }
  /// Returns true in the first call after `note_held`. Returns false in all other calls.
  [[nodiscard]] bool take_held() noexcept {
    if ((bits_.load(std::memory_order_relaxed) & held_bit) == 0) { return false; }
    return (bits_.fetch_and(~held_bit, std::memory_order_acq_rel) & held_bit) != 0;
  }
  [[nodiscard]] bool recovery_asked() const noexcept { return (bits_.load(std::memory_order_acquire) & recover_bit) != 0; }

  /// Returns the reason of the stop. If no stop was requested, returns the reason stored by `note_failure`. If no reason is stored either,
  /// the returned cause is `none`.
  [[nodiscard]] stop_reason why() const {
    const detail::mutex_lock lock(mutex_);
    return why_.cause != stop_cause::none ? why_ : failed_;
  }
  /// Stores `why`, which describes a failure that ended the loop. If the session continues after all, it calls `forget_failure`, which
  /// clears the stored reason.
  void note_failure(stop_reason why) {
    const detail::mutex_lock lock(mutex_);
    failed_ = std::move(why);
  }
  void forget_failure() noexcept { note_failure({}); }

  /// Stores `text` under `name`, as a note for displays of progress. Replaces the previous text of this name. An empty text removes the
  /// note.
  void show(std::string name, std::string text) {
    const detail::mutex_lock lock(mutex_);
    const auto known = std::find_if(notes_.begin(), notes_.end(), [&](const auto& one) { return one.first == name; });
    if (known == notes_.end()) {
      notes_.emplace_back(std::move(name), std::move(text));
    } else {
      known->second = std::move(text);
    }
    std::erase_if(notes_, [](const auto& one) { return one.second.empty(); });
  }
  /// Returns the notes as pairs of name and text, in the order in which they were stored first.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> shown() const {
    const detail::mutex_lock lock(mutex_);
    return notes_;
  }

  /// Requests that the session processes the events of background threads at its next boundary.
  void notify() noexcept { bits_.fetch_or(notified_bit, std::memory_order_release); }
  [[nodiscard]] bool is_notified() const noexcept { return (bits_.load(std::memory_order_relaxed) & notified_bit) != 0; }
  void clear_notification() noexcept { bits_.fetch_and(~notified_bit, std::memory_order_acq_rel); }

  /// Records that the session has saved a checkpoint, from which a recovery can continue.
  void note_checkpoint() noexcept { bits_.fetch_or(checkpoint_bit, std::memory_order_release); }
  [[nodiscard]] bool has_checkpoint() const noexcept { return (bits_.load(std::memory_order_acquire) & checkpoint_bit) != 0; }

  /// Reports a failure of background work. The session throws it at the next boundary.
  void report_failure(std::exception_ptr failure) {
    {
      const detail::mutex_lock lock(mutex_);
      failures_.push_back(std::move(failure));
    }
    notify();
  }
  [[nodiscard]] std::vector<std::exception_ptr> take_failures() {
    const detail::mutex_lock lock(mutex_);
    return std::exchange(failures_, {});
  }

private:
  enum : unsigned {
    stop_bit = 1,
    notified_bit = 2,
    hook_bit = 4,
    recover_bit = 8,
    checkpoint_bit = 16,
    save_bit = 32,
    interrupt_bit = 64,
    checkpoint_request_bit = 128,
    held_bit = 256
  };

  [[nodiscard]] static bool is_of_state(const stop_reason& why) noexcept {
    return detail::scope_of(why.cause) == detail::stop_scope::state;
  }
  [[nodiscard]] bool replaces(const stop_reason& why) const noexcept STEPWELL_HOLDS(mutex_) {
    if (why.cause == stop_cause::nan) { return is_of_state(why_); }
    return why.cause == stop_cause::error && why_.cause != stop_cause::error;
  }
  void stop(stop_reason why, unsigned bits) {
    detail::mutex_lock lock(mutex_);
    if (!of_step_ && detail::scope_of(why.cause) == detail::stop_scope::step) { of_step_ = why; }
    if (why_.cause == stop_cause::none || replaces(why)) {
      why_ = std::move(why);
    } else if (is_of_state(why_) && !is_of_state(why) && next_why_.cause == stop_cause::none) {
      next_why_ = std::move(why);
    }
    bits_.fetch_or(bits, std::memory_order_release);
    auto others = stopped_for_others_;
    lock.unlock();
    stopped_.notify_all();
    others.request_stop();
  }

  std::atomic<unsigned> bits_ = 0;
  mutable detail::checked_mutex mutex_;
  std::condition_variable stopped_;
  std::stop_source stopped_for_others_ STEPWELL_GUARDED_BY(mutex_);
  std::stop_source process_ends_for_others_;
  std::stop_source interrupted_for_others_ STEPWELL_GUARDED_BY(mutex_);
  stop_reason why_ STEPWELL_GUARDED_BY(mutex_);
  stop_reason next_why_ STEPWELL_GUARDED_BY(mutex_);  // the first request that does not follow from the state, if `why_` follows from it
  stop_reason failed_ STEPWELL_GUARDED_BY(mutex_);
  std::optional<stop_reason> of_step_ STEPWELL_GUARDED_BY(mutex_);
  std::optional<clock::time_point> process_ends_ STEPWELL_GUARDED_BY(mutex_);
  std::optional<clock::duration> grace_;
  std::string asked_by_ STEPWELL_GUARDED_BY(mutex_);
  std::vector<std::exception_ptr> failures_ STEPWELL_GUARDED_BY(mutex_);
  std::vector<std::pair<std::string, std::string>> notes_ STEPWELL_GUARDED_BY(mutex_);  // pairs of name and text
};

}  // namespace stepwell
