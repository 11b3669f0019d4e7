// SPDX-License-Identifier: Apache-2.0
//
// A hook that sends a signal to its own process.
#pragma once

#include <stepwell/base/clock.hpp>
#include <stepwell/protocol/session_signals.hpp>

#include <csignal>
#include <cstdint>
#include <memory>

namespace stepwell::test {

/// A hook that raises the signal in the run of step `at`, then blocks until the session has noticed it.
struct signalling_hook {
  std::int64_t at;
  int signal = SIGURG;

  void after_create_session(auto& session, auto&) { signals = session.signals(); }
  void after_run(auto& context, const auto&) {
    if (context.global_step() != at) { return; }
    ::raise(signal);
    signals->wait_for_stop(*system_clock(), clock::time_point::max());
  }

  std::shared_ptr<session_signals> signals = nullptr;
};

}  // namespace stepwell::test
