// SPDX-License-Identifier: Apache-2.0
//
// The result of one step in a loop over `steps`.
#pragma once

#include <cstdint>
#include <optional>

namespace stepwell {

/// The result of a completed step; all its hooks have been called.
template<class Result>
struct step_result {
  Result value;                                                 ///< The result of the model's `step`.
  std::int64_t global_step = 0;                                 ///< Number of steps done, including this one.
  int attempt = 1;                                              ///< Number of the attempt; above 1 in the first step after a recovery.
  std::optional<std::int64_t> rolled_back_from = std::nullopt;  ///< After a recovery that lost steps: the last lost step.
};

}  // namespace stepwell
