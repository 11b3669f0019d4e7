// SPDX-License-Identifier: Apache-2.0
//
// A deterministic simulation of several processes in one thread. Each process is a fiber, of which exactly one runs at a time. At each
// scheduling point the simulation selects the next process with numbers from its seed, so the same seed repeats the same schedule. The time
// is virtual: it advances when all processes wait.
//
//   simulation world(seed);
//   auto& one = world.start([&] { world.sleep_for(1s); });
//   world.start([&] { world.wait([&] { return one.has_ended(); }, clock::time_point::max()); });
//   CHECK(world.run({}) == simulation::outcome::all_ended);
#pragma once

#include <ucontext.h>
#include <stepwell/base/clock.hpp>
#include <stepwell/base/detail/function_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <vector>

namespace stepwell::test {

/// Thrown at the scheduling points of a killed process. Unwinds its stack.
struct process_killed {};

/// One process of a simulation.
class simulated_process {
public:
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  /// Returns true from the kill on. Objects of a killed process are destroyed, but their destructors must not have an effect on others.
  [[nodiscard]] bool is_killed() const noexcept { return is_killed_; }
  [[nodiscard]] bool is_frozen() const noexcept { return is_frozen_; }
  /// Returns the exception that ended the process, or null.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }

private:
  friend class simulation;
  std::function<void()> main_;
  ucontext_t context_ = {};
  std::unique_ptr<std::byte[]> stack_;
  const function_ref<bool()>* done_ = nullptr;  // the end of the current wait; null if the process does not wait
  clock::time_point wakes_;
  bool is_woken_ = false;
  bool has_started_ = false;
  bool has_ended_ = false;
  bool is_killed_ = false;
  bool is_frozen_ = false;
  std::stop_source stop_;
  std::exception_ptr failure_;
  std::uint64_t exceptions_[2] = {};  // the exceptions that this stack handles now
  void* fake_stack_ = nullptr;        // of the address sanitizer
};

/// @threads One.
class simulation {
public:
  enum class outcome {
    all_ended,
    stuck,    ///< A process waits for something that cannot happen.
    too_long  ///< A limit of `limits` was reached.
  };
  struct limits {
    std::uint64_t points = 1'000'000;
    clock::duration time = std::chrono::hours(24);
  };

  explicit simulation(std::uint64_t seed);
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  /// Kills the processes that have not ended.
  ~simulation();

  /// Returns the clock of the processes. A wait on it ends at its time, or when a stop is requested for its process.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept { return clock_; }
  [[nodiscard]] clock::time_point now() const noexcept { return now_; }
  /// Returns a random number below `bound`.
  std::uint64_t random(std::uint64_t bound);
  bool happens(double probability) { return static_cast<double>(random(1'000'000)) < probability * 1'000'000; }

  /// Starts a process. It runs from the next scheduling point on.
  simulated_process& start(std::function<void()> main);
  /// Ends a process at its current scheduling point: unwinds its stack.
  /// @pre The caller is an action, or the process itself.
  void kill(simulated_process& victim);
  /// Suspends a process at its current scheduling point, until it is resumed or killed.
  static void freeze(simulated_process& victim) { victim.is_frozen_ = true; }
  static void resume(simulated_process& victim) { victim.is_frozen_ = false; }
  static void request_stop(simulated_process& of);
  /// Calls `action` at a time, or before the scheduling point with a number, counted from 1. An action has no scheduling points.
  void at(clock::time_point when, std::function<void()> action) { timers_.emplace(when, std::move(action)); }
  void after(clock::duration delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }
  void at_point(std::uint64_t number, std::function<void()> action) { at_points_.emplace(number, std::move(action)); }
  /// Runs all processes and actions.
  outcome run(const limits& most);
  [[nodiscard]] std::uint64_t points() const noexcept { return points_; }

  // ---- Functions for processes.

  [[nodiscard]] simulated_process& self() const noexcept { return *running_; }
  /// Lets other processes run.
  void point();
  /// Waits until `done()` returns true, at most until `when`. Returns the last value of `done()`.
  bool wait(function_ref<bool()> done, clock::time_point when);
  void sleep_for(clock::duration length);

private:
  class virtual_clock;

  static void enter();
  void run_actions();
  [[nodiscard]] bool is_ready(const simulated_process& one) const;
  void switch_to(simulated_process& next);
  void switch_back();

  static simulation* current_;
  std::uint64_t random_;
  clock::time_point now_;
  std::shared_ptr<clock> clock_;
  std::uint64_t points_ = 0;
  std::vector<std::unique_ptr<simulated_process>> processes_;
  std::multimap<clock::time_point, std::function<void()>> timers_;
  std::multimap<std::uint64_t, std::function<void()>> at_points_;
  std::vector<simulated_process*> ready_;
  simulated_process* running_ = nullptr;
  ucontext_t scheduler_ = {};
  std::uint64_t scheduler_exceptions_[2] = {};
};

}  // namespace stepwell::test
