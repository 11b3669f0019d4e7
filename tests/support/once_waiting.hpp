// SPDX-License-Identifier: Apache-2.0
//
// Runs an action as soon as a thread waits on a manual clock. A test uses it to move time or to open a gate while the
// session waits.
#pragma once

#include <stepwell/base/clock.hpp>

#include <memory>
#include <thread>

namespace stepwell::test {

/// A thread that runs `action` once the clock has one more waiter than at construction, at the latest after 60 s.
class once_waiting {
public:
  template<class Action>
  once_waiting(std::shared_ptr<manual_clock> clock, Action action)
      : thread_([clock, action, alarms = clock->pending()] {
          for (int minute = 0; minute < 6 && !clock->wait_for_pending(alarms + 1); ++minute) {}
          action();
        }) {}
  ~once_waiting() { thread_.join(); }

private:
  std::thread thread_;
};

}  // namespace stepwell::test
