// SPDX-License-Identifier: Apache-2.0
//
// What a step function holds: runs with hooks, runs without, and a way out (contract STEP).
#pragma once

#include "stepwell/base/error.hpp"

#include <utility>

namespace stepwell {

/// @lifetime Valid during the call of the step function.
template<class Session>
class step_context {
public:
  explicit step_context(Session& session) noexcept : session_(session) {}
  step_context(const step_context&) = delete;
  step_context& operator=(const step_context&) = delete;

  /// The raw session, always the present one (D-11). Runs made on it call no hook (STEP-4).
  [[nodiscard]] auto& session() const noexcept { return session_.raw_session(); }
  /// As `run` of the monitored session, hooks and all; a recovery repeats the whole step function, not this call (STEP-7).
  template<class... Args>
  auto run_with_hooks(Args&&... args) const {
    return session_.run_within_step(std::forward<Args>(args)...);
  }
  /// Ends the step function. @errors `stop_iteration`, always: `with` takes it as a clean end (STEP-5).
  [[noreturn]] void request_stop() const { throw stop_iteration("the step function asked to stop"); }

private:
  Session& session_;
};

}  // namespace stepwell
