// SPDX-License-Identifier: Apache-2.0
//
// A thread that notices if an operation of MPI lasts too long.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/thread.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace stepwell::mpi::detail {

enum class operation : std::uint8_t { none, form, sum, broadcast };

/// The number of operations that a process has begun, and the operation that it executes.
struct progress {
  std::uint64_t begun = 0;
  operation running = operation::none;
  bool operator==(const progress&) const = default;

  [[nodiscard]] std::uint64_t packed() const noexcept { return begun << 2U | static_cast<std::uint64_t>(running); }
  [[nodiscard]] static progress unpacked(std::uint64_t word) noexcept { return {word >> 2U, static_cast<operation>(word & 3U)}; }
};

/// The progress of this process. Costs an operation two stores.
/// @threads One thread begins and ends operations. `now` may be called from any thread.
class progress_mark {
public:
  /// An operation, from construction to destruction.
  class scope {
  public:
    scope(progress_mark& mark, operation what) noexcept : mark_(mark) { mark_.store({++mark_.begun_, what}); }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() { mark_.store({mark_.begun_, operation::none}); }

  private:
    progress_mark& mark_;
  };

  [[nodiscard]] progress now() const noexcept { return progress::unpacked(word_.load(std::memory_order_relaxed)); }

private:
  void store(const progress& value) noexcept { word_.store(value.packed(), std::memory_order_relaxed); }

  std::uint64_t begun_ = 0;
  std::atomic<std::uint64_t> word_ = 0;
};

/// A thread that checks the progress of this process in each period.
class watchdog {
public:
  /// Functions that the thread calls.
  struct actions {
    /// Called in each period.
    std::function<void()> poll;
    /// Called once, when the operation of `late` has lasted for the limit.
    std::function<void(const progress& late)> expired;
  };

  /// @errors `resource_exhausted_error` if the system cannot start a thread.
  watchdog(std::shared_ptr<clock> time, clock::duration limit, const progress_mark& mark, actions call)
      : time_(std::move(time)), limit_(limit), mark_(mark), call_(std::move(call)) {
    thread_ = value_or_throw(stepwell::detail::start_thread("the watchdog of MPI", [this] { run(); }));
  }
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  /// Waits until the thread has ended.
  ~watchdog() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

  /// Returns the period: an operation ends the job by so much later than at its limit.
  [[nodiscard]] clock::duration period() const {
    return std::clamp<clock::duration>(limit_ / 20, std::chrono::milliseconds(1), std::chrono::milliseconds(250));
  }

private:
  void run() {
    progress seen;
    auto since = time_->now();
    for (;;) {
      const auto now = time_->now();
      if (const auto current = mark_.now(); current != seen) {
        seen = current;
        since = now;
      } else if (is_limited(seen) && now - since >= limit_) {
        return call_.expired(seen);
      }
      if (wait_until(now + period())) { return; }
      call_.poll();
    }
  }

  /// Returns true if `what` has the time limit: a formation has one of its own.
  [[nodiscard]] static bool is_limited(const progress& what) {
    return what.running == operation::sum || what.running == operation::broadcast;
  }

  [[nodiscard]] bool wait_until(clock::time_point when) {
    std::unique_lock lock(mutex_);
    return time_->wait_until(lock, over_, when, [&] { return is_over_; });
  }

  std::shared_ptr<clock> time_;
  clock::duration limit_;
  const progress_mark& mark_;
  actions call_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  stepwell::detail::owned_thread thread_;
};

}  // namespace stepwell::mpi::detail
