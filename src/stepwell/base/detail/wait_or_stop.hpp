// SPDX-License-Identifier: Apache-2.0
//
// A wait on a condition with a deadline, which also ends when a stop is requested.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/locks.hpp"

#include <condition_variable>
#include <stop_token>

namespace stepwell::detail {

/// Waits until `done()` returns true, at most until `when`, or until a stop is requested for `stop`. Returns the last value of `done()`.
/// `done` is called with `mutex` held. It is not called again after it has returned true, so it may take the awaited thing.
template<class Done>
bool wait_or_stop(clock& source, checked_mutex& mutex, std::condition_variable& changed, clock::time_point when,
                  const std::stop_token& stop,
                  Done done) STEPWELL_HOLDS_NOT(mutex) STEPWELL_UNCHECKED_LOCKS {  // clang does not know that `mutex` is the one of `done`
  const std::stop_callback wake(stop, [&] {
    { const mutex_lock lock(mutex); }  // so that the notification is not lost
    changed.notify_all();
  });
  bool is_done = false;
  mutex_lock lock(mutex);
  source.wait_until(lock, changed, when, [&]() STEPWELL_UNCHECKED_LOCKS { return (is_done = done()) || stop.stop_requested(); });
  return is_done;
}

}  // namespace stepwell::detail
