// SPDX-License-Identifier: Apache-2.0
//
// Something to be done every so often, on a thread of its own (contract LOOP).
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <functional>
#include <optional>
#include <string>

namespace stepwell {

struct looper_options {
  std::string name = "LooperThread";
  std::function<void()> start_loop = nullptr;  ///< Called once on the thread, before the first call.
  std::function<void()> stop_loop = nullptr;   ///< Called once on the thread, after the last call; not after a failure.
};

/// Calls a function until its coordinator is stopped: at once, and then at start + k * interval on the coordinator's
/// clock. A late call does not shift the others; those that are due are made one after the other (LOOP-1). Without an
/// interval it calls back to back. What the function throws asks for a stop.
///
///     auto looper = stepwell::looper_thread::loop(threads, 10s, [&] { report(); });
/// @lifetime The coordinator must outlive the thread, which its `join` waits for.
class looper_thread {
public:
  /// @errors `invalid_argument_error` for no function, or a negative interval.
  looper_thread(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop, looper_options options = {});

  /// Starts the thread.
  /// @errors As `coordinated_thread::start`.
  void start() { thread_.start(); }
  /// One that is started.
  static looper_thread loop(coordinator& threads, std::optional<clock::duration> interval, std::function<void()> run_loop,
                            looper_options options = {});

  [[nodiscard]] const coordinated_thread& thread() const noexcept { return thread_; }

private:
  coordinated_thread thread_;
};

}  // namespace stepwell
