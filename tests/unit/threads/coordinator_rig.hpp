// SPDX-License-Identifier: Apache-2.0
//
// A coordinator on a manual clock, and threads that do not end.
#pragma once

#include "support/gate.hpp"

#include <stepwell/base/clock.hpp>
#include <stepwell/threads/coordinator.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace stepwell::test {

inline std::exception_ptr failing(const char* what) { return std::make_exception_ptr(std::runtime_error(what)); }

/// A coordinator on a manual clock, and a gate for threads that do not end.
struct coordinator_rig {
  coordinator_rig() { held_up.close(); }
  ~coordinator_rig() { held_up.open(); }

  /// Starts a thread that ignores the stop request and ends when the gate opens.
  coordinated_thread start_stubborn(const std::string& name) {
    return threads.start_thread(name, [this](std::stop_token) { held_up.pass(); });
  }

  std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
  gate held_up;
  coordinator threads{time};
};

}  // namespace stepwell::test
