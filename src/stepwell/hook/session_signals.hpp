// SPDX-License-Identifier: Apache-2.0
//
// What other threads may tell a session between two steps: stop, and what failed in the background.
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

/// One word that the loop looks at once a step, and what stands behind it.
/// @threads All functions may be called from any thread. Shared, since writers may outlive the session.
class session_signals {
public:
  session_signals();
  session_signals(const session_signals&) = delete;
  session_signals& operator=(const session_signals&) = delete;
  ~session_signals();

  /// Asks the loop to end. The first cause is kept, but for an error, which replaces any other.
  void request_stop(stop_reason why);
  /// The same by a hook: no run may come after it (RUN-1). A stop from elsewhere may come between the caller's look at
  /// `should_stop` and its run, and must not turn that run into an error.
  void request_stop_by_hook(stop_reason why);
  /// Somebody outside wants the process to end: a stop, and the next boundary saves. `now` is by the session's clock.
  void end_process(std::string why, clock::time_point now);
  /// Since when, if so.
  [[nodiscard]] std::optional<clock::time_point> process_ends() const;
  /// Whether the state is to be saved because the process ends; says so once.
  [[nodiscard]] bool take_save_for_end() noexcept { return (bits_.fetch_and(~save_bit, std::memory_order_acq_rel) & save_bit) != 0; }
  /// What is done about the state then becomes part of the reason.
  void note_plan(std::string_view plan);
  [[nodiscard]] bool stopped_by_hook() const noexcept { return (bits_.load(std::memory_order_relaxed) & hook_bit) != 0; }
  [[nodiscard]] bool stop_requested() const noexcept { return (bits_.load(std::memory_order_acquire) & stop_bit) != 0; }
  /// For waits elsewhere: a stop of the session ends them.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stopped_for_others_.get_token(); }
  /// Waits for a stop, at most until `when`; whether there was one, or nobody waits for what this thread does any more.
  bool wait_for_stop(clock& time, clock::time_point when);

  /// Nobody waits any more for the session to be made ready: whoever makes it gives up where it would wait for others, with
  /// `cancelled_error`. Not a stop: it may be made ready later, once `clear_interruption` was called.
  void interrupt();
  void clear_interruption();
  [[nodiscard]] bool interrupted() const noexcept { return (bits_.load(std::memory_order_acquire) & interrupt_bit) != 0; }
  /// For waits elsewhere: the next interruption ends them.
  [[nodiscard]] std::stop_token interruption_token() const;

  /// The session has to be made anew before its next run: a thread of it failed in a way that may pass (contract WRAP-4).
  void ask_to_recover() noexcept { bits_.fetch_or(recover_bit, std::memory_order_release); }
  void recovered() noexcept { bits_.fetch_and(~recover_bit, std::memory_order_acq_rel); }
  /// Whether a run may begin just like that: no hook asked to stop, nothing is to be recovered.
  [[nodiscard]] bool clear_to_run() const noexcept { return (bits_.load(std::memory_order_relaxed) & (hook_bit | recover_bit)) == 0; }
  [[nodiscard]] bool recovery_asked() const noexcept { return (bits_.load(std::memory_order_acquire) & recover_bit) != 0; }

  /// Why a stop was asked for, else the failure under which the session stands.
  [[nodiscard]] stop_reason why() const;
  /// What ended the loop, unless somebody goes on after it: then it is forgotten again.
  void note_failure(stop_reason why);
  void forget_failure() noexcept;

  /// Wakes the session at its next boundary: something in the background wants to be heard.
  void call_attention() noexcept { bits_.fetch_or(attention_bit, std::memory_order_release); }
  [[nodiscard]] bool attention() const noexcept { return (bits_.load(std::memory_order_relaxed) & attention_bit) != 0; }
  void clear_attention() noexcept { bits_.fetch_and(~attention_bit, std::memory_order_acq_rel); }

  /// There is a checkpoint to restore from.
  void note_checkpoint() noexcept { bits_.fetch_or(checkpoint_bit, std::memory_order_release); }
  [[nodiscard]] bool has_checkpoint() const noexcept { return (bits_.load(std::memory_order_acquire) & checkpoint_bit) != 0; }

  /// Hands over a failure of background work; it is thrown at the next boundary.
  void report_failure(std::exception_ptr failure);
  [[nodiscard]] std::vector<std::exception_ptr> take_failures();

private:
  static constexpr unsigned stop_bit = 1;
  static constexpr unsigned attention_bit = 2;
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
