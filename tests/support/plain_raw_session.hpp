// SPDX-License-Identifier: Apache-2.0
//
// A raw session with the required members only. Tests of optional members derive from it.
#pragma once

#include <stepwell/base/variable.hpp>
#include <stepwell/protocol/raw_session.hpp>

#include <cstdint>

namespace stepwell::test {

struct plain_raw_session {
  using result_type = int;
  using outcome_type = run_outcome<int>;

  outcome_type run(const auto& /*request*/) {
    ++steps;
    return {0, steps - 1, steps};
  }
  int read(const outcome_type& done, int /*fetch*/) const { return done.result; }
  [[nodiscard]] std::int64_t global_step() const { return steps; }
  variable_list variables() { return stepwell::variables({{"global_step", steps}}); }

  std::int64_t steps = 0;
};

}  // namespace stepwell::test
