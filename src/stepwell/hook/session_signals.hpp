// SPDX-License-Identifier: Apache-2.0
//
// Signals from other threads to a session, processed between two steps: stop requests and background failures.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/hook/stop.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell {

/// Flags that the loop checks once for each step, and the data that belongs to them.
/// @threads All functions may be called on any thread. Shared, because writers may outlive the session.
class session_signals {
public:
  session_signals();
  session_signals(const session_signals&) = delete;
  session_signals& operator=(const session_signals&) = delete;
  ~session_signals();

  /// Requests the loop to end. The first reason is kept, except that an error replaces a reason that is not an error.
  void request_stop(stop_reason why);
  /// Requests the loop to end, on behalf of a hook. No run may follow. A stop from elsewhere does not reject runs: it may come between the
  /// caller's check of `should_stop` and its run, and must not turn that run into an error.
  /// @see contract RUN-1
  void request_stop_by_hook(stop_reason why);
  /// Requests a stop and a save at the next boundary, because the process has to end. `now` is a time on the session's clock.
  void end_process(std::string why, clock::time_point now);
  /// Returns the time of the first call of `end_process`; empty before it.
  [[nodiscard]] std::optional<clock::time_point> process_ends() const;
  /// Returns true if the state should be saved because the process ends. Returns true only once for each call of `end_process`.
  [[nodiscard]] bool take_save_for_end() noexcept { return (bits_.fetch_and(~save_bit, std::memory_order_acq_rel) & save_bit) != 0; }
  /// Appends `plan`, the decision about the state, to the reason of the stop. Has an effect only if a signal requested the stop.
  void note_plan(std::string_view plan);
  [[nodiscard]] bool stopped_by_hook() const noexcept { return (bits_.load(std::memory_order_relaxed) & hook_bit) != 0; }
  [[nodiscard]] bool stop_requested() const noexcept { return (bits_.load(std::memory_order_acquire) & stop_bit) != 0; }
  /// Returns a token for other blocking calls: a stop of the session ends them.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stopped_for_others_.get_token(); }
  /// Blocks until a stop is requested or the session is interrupted, at most until `when`. Returns true unless the time has expired.
  bool wait_for_stop(clock& time, clock::time_point when);

  /// Cancels the creation of the session: code that creates it throws `cancelled_error` where it would otherwise wait. This is not a stop:
  /// creation may be repeated after `clear_interruption`.
  void interrupt();
  void clear_interruption();
  [[nodiscard]] bool interrupted() const noexcept { return (bits_.load(std::memory_order_acquire) & interrupt_bit) != 0; }
  /// Returns a token for other blocking calls: the next interruption ends them.
  [[nodiscard]] std::stop_token interruption_token() const;

  /// Requests a recovery before the next run, because one of the session's threads had a transient failure.
  /// @see contract WRAP-4
  void ask_to_recover() noexcept { bits_.fetch_or(recover_bit, std::memory_order_release); }
  void recovered() noexcept { bits_.fetch_and(~recover_bit, std::memory_order_acq_rel); }
  /// Returns true if a run may begin at once, that is, unless a hook has requested a stop or a recovery is pending.
  [[nodiscard]] bool clear_to_run() const noexcept { return (bits_.load(std::memory_order_relaxed) & (hook_bit | recover_bit)) == 0; }
  [[nodiscard]] bool recovery_asked() const noexcept { return (bits_.load(std::memory_order_acquire) & recover_bit) != 0; }

  /// Returns the reason of the stop, or else the failure reported by `note_failure`.
  [[nodiscard]] stop_reason why() const;
  /// Stores the failure that ended the loop. `forget_failure` clears it if the session continues.
  void note_failure(stop_reason why);
  void forget_failure() noexcept;

  /// Requests that the session processes background events at its next boundary.
  void notify() noexcept { bits_.fetch_or(notified_bit, std::memory_order_release); }
  [[nodiscard]] bool is_notified() const noexcept { return (bits_.load(std::memory_order_relaxed) & notified_bit) != 0; }
  void clear_notification() noexcept { bits_.fetch_and(~notified_bit, std::memory_order_acq_rel); }

  /// Records that there is a checkpoint to restore from.
  void note_checkpoint() noexcept { bits_.fetch_or(checkpoint_bit, std::memory_order_release); }
  [[nodiscard]] bool has_checkpoint() const noexcept { return (bits_.load(std::memory_order_acquire) & checkpoint_bit) != 0; }

  /// Reports a failure of background work. It is thrown at the next boundary.
  void report_failure(std::exception_ptr failure);
  [[nodiscard]] std::vector<std::exception_ptr> take_failures();

private:
  static constexpr unsigned stop_bit = 1;
  static constexpr unsigned notified_bit = 2;
  static constexpr unsigned hook_bit = 4;
  static constexpr unsigned recover_bit = 8;
  static constexpr unsigned checkpoint_bit = 16;
  static constexpr unsigned save_bit = 32;
  static constexpr unsigned interrupt_bit = 64;

  void stop(stop_reason why, unsigned bits);

  void keep(stop_reason why);

  std::atomic<unsigned> bits_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  std::stop_source stopped_for_others_;
  std::stop_source interrupted_for_others_;
  stop_reason why_;
  stop_reason failed_;
  std::optional<clock::time_point> process_ends_;
  std::string asked_by_;
  std::vector<std::exception_ptr> failures_;
};

}  // namespace stepwell
