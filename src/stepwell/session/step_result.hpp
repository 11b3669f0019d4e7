// SPDX-License-Identifier: Apache-2.0
//
// What a loop over `steps` sees.
#pragma once

#include <cstdint>
#include <optional>

namespace stepwell {

/// One step that is done, hooks and all.
template<class Result>
struct step_result {
  Result value;                                                 ///< What the model's `step` returned.
  std::int64_t global_step = 0;                                 ///< Steps done, this one included.
  int attempt = 1;                                              ///< Above one after a recovery.
  std::optional<std::int64_t> rolled_back_from = std::nullopt;  ///< The step that was lost, if one was.
};

}  // namespace stepwell
