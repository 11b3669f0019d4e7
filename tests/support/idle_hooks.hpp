// SPDX-License-Identifier: Apache-2.0
//
// A model whose step takes about one nanosecond, and six hooks that never do work. They measure the cost of a run.
#pragma once

#include <stepwell/base/cadence.hpp>
#include <stepwell/base/variable.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/model/model_session.hpp>

#include <chrono>
#include <cstdint>

namespace stepwell::test {

struct tiny_model {
  struct result {
    float loss;
  };
  float x = 1;

  result step(const float& batch) {
    x = x * 0.999f + batch;
    asm volatile("" : "+m"(x));  // keeps the compiler from removing the step, with and without a session
    return {x};
  }
  variable_list variables() { return stepwell::variables({{"x", x}}); }
};

/// A hook with a cadence that is never due. `Number` makes distinct types.
template<int Number>
struct idle_hook {
  cadence period;
  second_or_step_timer timer = {};
  long triggered = 0;

  void after_create_session(auto& session, auto&) {
    timer = second_or_step_timer(period, session.time());
    timer.update_last_triggered_step(session.global_step());
  }
  void after_run(auto& context, const auto&) {
    if (timer.should_trigger_for_step(context.global_step())) [[unlikely]] { ++triggered; }
  }
};

inline constexpr std::int64_t far_away = std::int64_t{1} << 60;

/// Returns a session with a stop hook, a NaN guard, three cadences in steps and one in seconds.
inline auto session_with_six_idle_hooks(tiny_model& model) {
  return monitored_session(model, stop_at_step_hook{{.last_step = far_away}},
                           nan_tensor_hook{tag("a name that does not fit into a short string", &tiny_model::result::loss)},
                           idle_hook<1>{{.every_steps = far_away}}, idle_hook<2>{{.every_steps = far_away}},
                           idle_hook<3>{{.every_steps = far_away}}, idle_hook<4>{{.every_secs = std::chrono::hours(24)}});
}

/// An endless source of the same batch.
struct repeating_source {
  float batch = 0.5f;

  const float* peek() { return &batch; }
  void advance() {}
  std::uint64_t position() const { return 0; }
  void seek(std::uint64_t) {}
};

}  // namespace stepwell::test
