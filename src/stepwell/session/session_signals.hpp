// SPDX-License-Identifier: Apache-2.0
//
// What other threads may tell a session between two steps: stop, and what failed in the background.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/session/stop.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// One word that the loop looks at once a step, and what stands behind it.
/// @threads All functions may be called from any thread. Shared, since writers may outlive the session.
class session_signals {
public:
  /// Asks the loop to end. The first cause is kept, but for an error, which replaces any other.
  void request_stop(stop_reason why) { stop(std::move(why), stop_bit); }
  /// The same by a hook: no run may come after it (RUN-1). A stop from elsewhere may come between the caller's look at
  /// `should_stop` and its run, and must not turn that run into an error.
  void request_stop_by_hook(stop_reason why) { stop(std::move(why), stop_bit | hook_bit); }
  /// Somebody outside wants the process to end: a stop, and the next boundary saves. `now` is by the session's clock.
  void end_process(std::string why, clock::time_point now) {
    {
      const std::lock_guard lock(mutex_);
      if (!process_ends_) { process_ends_ = now; }
      asked_by_ = why;
    }
    stop({stop_cause::signal, std::move(why)}, stop_bit | save_bit | attention_bit);
  }
  /// Since when, if so.
  [[nodiscard]] std::optional<clock::time_point> process_ends() const {
    const std::lock_guard lock(mutex_);
    return process_ends_;
  }
  /// Whether the state is to be saved because the process ends; says so once.
  [[nodiscard]] bool take_save_for_end() noexcept { return (bits_.fetch_and(~save_bit, std::memory_order_acq_rel) & save_bit) != 0; }
  /// What is done about the state then becomes part of the reason.
  void note_plan(std::string_view plan) {
    const std::lock_guard lock(mutex_);
    if (why_.cause == stop_cause::signal) { why_.text = asked_by_ + "; " + std::string(plan); }
  }
  [[nodiscard]] bool stopped_by_hook() const noexcept { return (bits_.load(std::memory_order_relaxed) & hook_bit) != 0; }
  [[nodiscard]] bool stop_requested() const noexcept { return (bits_.load(std::memory_order_acquire) & stop_bit) != 0; }
  /// For waits elsewhere: a stop of the session ends them.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stopped_for_others_.get_token(); }
  /// Waits for a stop, at most until `when`; whether there was one, or nobody waits for what this thread does any more.
  bool wait_for_stop(clock& time, clock::time_point when) {
    std::unique_lock lock(mutex_);
    return time.wait_until(lock, stopped_, when, [this] { return stop_requested() || interrupted(); });
  }

  /// Nobody waits any more for the session to be made ready: whoever makes it gives up where it would wait for others, with
  /// `cancelled_error`. Not a stop: it may be made ready later, once `clear_interruption` was called.
  void interrupt() {
    std::stop_source others;
    {
      const std::lock_guard lock(mutex_);
      bits_.fetch_or(interrupt_bit, std::memory_order_release);
      others = interrupted_for_others_;
    }
    stopped_.notify_all();
    others.request_stop();
  }
  void clear_interruption() {
    const std::lock_guard lock(mutex_);
    if (interrupted_for_others_.stop_requested()) { interrupted_for_others_ = std::stop_source(); }
    bits_.fetch_and(~interrupt_bit, std::memory_order_acq_rel);
  }
  [[nodiscard]] bool interrupted() const noexcept { return (bits_.load(std::memory_order_acquire) & interrupt_bit) != 0; }
  /// For waits elsewhere: the next interruption ends them.
  [[nodiscard]] std::stop_token interruption_token() const {
    const std::lock_guard lock(mutex_);
    return interrupted_for_others_.get_token();
  }

  /// The session has to be made anew before its next run: a thread of it failed in a way that may pass (contract WRAP-4).
  void ask_to_recover() noexcept { bits_.fetch_or(recover_bit, std::memory_order_release); }
  void recovered() noexcept { bits_.fetch_and(~recover_bit, std::memory_order_acq_rel); }
  /// Whether a run may begin just like that: no hook asked to stop, nothing is to be recovered.
  [[nodiscard]] bool clear_to_run() const noexcept { return (bits_.load(std::memory_order_relaxed) & (hook_bit | recover_bit)) == 0; }
  [[nodiscard]] bool recovery_asked() const noexcept { return (bits_.load(std::memory_order_acquire) & recover_bit) != 0; }

  /// Why a stop was asked for, else the failure under which the session stands.
  [[nodiscard]] stop_reason why() const {
    const std::lock_guard lock(mutex_);
    return why_.cause != stop_cause::none ? why_ : failed_;
  }
  /// What ended the loop, unless somebody goes on after it: then it is forgotten again.
  void note_failure(stop_reason why) {
    const std::lock_guard lock(mutex_);
    failed_ = std::move(why);
  }
  void forget_failure() noexcept {
    const std::lock_guard lock(mutex_);
    failed_ = {};
  }

  /// Wakes the session at its next boundary: something in the background wants to be heard.
  void call_attention() noexcept { bits_.fetch_or(attention_bit, std::memory_order_release); }
  [[nodiscard]] bool attention() const noexcept { return (bits_.load(std::memory_order_relaxed) & attention_bit) != 0; }
  void clear_attention() noexcept { bits_.fetch_and(~attention_bit, std::memory_order_acq_rel); }

  /// There is a checkpoint to restore from.
  void note_checkpoint() noexcept { bits_.fetch_or(checkpoint_bit, std::memory_order_release); }
  [[nodiscard]] bool has_checkpoint() const noexcept { return (bits_.load(std::memory_order_acquire) & checkpoint_bit) != 0; }

  /// Hands over a failure of background work; it is thrown at the next boundary.
  void report_failure(std::exception_ptr failure) {
    {
      const std::lock_guard lock(mutex_);
      failures_.push_back(std::move(failure));
    }
    call_attention();
  }
  [[nodiscard]] std::vector<std::exception_ptr> take_failures() {
    const std::lock_guard lock(mutex_);
    return std::exchange(failures_, {});
  }

private:
  static constexpr unsigned stop_bit = 1;
  static constexpr unsigned attention_bit = 2;
  static constexpr unsigned hook_bit = 4;
  static constexpr unsigned recover_bit = 8;
  static constexpr unsigned checkpoint_bit = 16;
  static constexpr unsigned save_bit = 32;
  static constexpr unsigned interrupt_bit = 64;

  void stop(stop_reason why, unsigned bits) {
    {
      const std::lock_guard lock(mutex_);
      keep(std::move(why));
      bits_.fetch_or(bits, std::memory_order_release);
    }
    stopped_.notify_all();
    stopped_for_others_.request_stop();
  }

  void keep(stop_reason why) {
    if (why_.cause == stop_cause::none || (why.cause == stop_cause::error && why_.cause != stop_cause::error)) { why_ = std::move(why); }
  }

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
