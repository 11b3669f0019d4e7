// SPDX-License-Identifier: Apache-2.0
//
// A hook that records when the values of an evaluation take effect.
#pragma once

#include <stepwell/protocol/detail/evaluated_value.hpp>
#include <stepwell/protocol/hook.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace stepwell::test {

/// Steps and the values that took effect at them.
using effects = std::vector<std::pair<std::int64_t, double>>;

/// Records the values of an evaluation, with the step at which each takes effect.
struct effects_hook {
  static constexpr auto phase = hook_phase::guard;
  evaluated_value watched;
  effects* seen;
  std::int64_t count = 0;

  void after_create_session(auto& /*session*/, auto& /*threads*/) { count = watched.count(); }
  void after_run(auto& context, const auto&) {
    if (watched.count() == count) { return; }
    count = watched.count();
    seen->emplace_back(context.global_step(), *watched.value());
  }
};

}  // namespace stepwell::test
