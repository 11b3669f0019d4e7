// SPDX-License-Identifier: Apache-2.0
//
// A thread that calls a function at regular intervals.
// @see contract LOOP
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <functional>
#include <optional>
#include <string>

namespace stepwell {

/// Options of a `looper_thread`.
struct looper_options {
  std::string name = "LooperThread";
  std::function<void()> start_loop = nullptr;  ///< Called once on the thread, before the first call.
  std::function<void()> stop_loop = nullptr;   ///< Called once on the thread, after the last call; not after a failure.
};

/// Calls a function until its coordinator is stopped. The first call is made at once, later calls at start + k * interval on the
/// coordinator's clock. A late call does not shift the others; overdue calls are made one after the other. Without an interval the
/// function is called in a loop without pause. An exception of the function requests a stop.
///
///     auto looper = stepwell::looper_thread::loop(threads, 10s, [&] { report(); });
/// @lifetime The coordinator must outlive the thread; its `join` waits for the thread.
/// @see      contract LOOP-1
class looper_thread {
public:
  /// Creates and registers the thread without starting it.
  /// @errors `invalid_argument_error` if there is no function or the interval is negative.
  looper_thread(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop, looper_options options = {});

  /// Starts the thread.
  /// @errors Like `coordinated_thread::start`.
  void start() { thread_.start(); }
  /// Creates a looper and starts it.
  static looper_thread loop(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop,
                            looper_options options = {});

  [[nodiscard]] const coordinated_thread& thread() const noexcept { return thread_; }

private:
  coordinated_thread thread_;
};

}  // namespace stepwell
