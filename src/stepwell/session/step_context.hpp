// SPDX-License-Identifier: Apache-2.0
//
// The argument of a step function: access to runs with hooks, runs without hooks, and a stop of the step function.
// @see contract STEP
#pragma once

#include "stepwell/base/error.hpp"

#include <utility>

namespace stepwell {

/// The argument of a step function.
/// @lifetime Valid during the call of the step function.
template<class Session>
class step_context {
public:
  explicit step_context(Session& session) noexcept : session_(session) {}
  step_context(const step_context&) = delete;
  step_context& operator=(const step_context&) = delete;

  /// Returns the current raw session. Runs made on it directly call no hooks. @see contract STEP-4, D-11
  [[nodiscard]] auto& session() const noexcept { return session_.raw_session(); }
  /// Like `run` of the monitored session. A recovery repeats the whole step function, not this call. @see contract STEP-7
  template<class... Args>
  auto run_with_hooks(Args&&... args) const {
    return session_.run_within_step(std::forward<Args>(args)...);
  }
  /// Ends the step function. @errors Always throws `stop_iteration`, which `with` handles as a clean end. @see contract STEP-5
  [[noreturn]] void request_stop() const { throw stop_iteration("the step function asked to stop"); }

private:
  Session& session_;
};

}  // namespace stepwell
