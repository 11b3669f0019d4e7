// SPDX-License-Identifier: Apache-2.0
//
// From the two options every saver has (steps, seconds) to one cadence (contract CREATE-2 to CREATE-5, D-8).
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepwell {

/// Two options of which at most one can hold.
struct cadence_setting {
  std::string_view steps_name;  ///< e.g. "save_checkpoint_steps"; for the warning.
  setting<std::int64_t> steps;
  std::string_view secs_name;
  setting<seconds_value> secs;
};

/// The cadence wanted; nothing for "off". Neither said: `otherwise`. Saying one, even none or 0, switches the other's
/// default off. Both above zero: seconds are used, with a warning that names both options.
/// @errors `invalid_argument_error` naming the option that is negative (D-31).
[[nodiscard]] std::optional<cadence> choose_cadence(const cadence_setting& said, std::optional<cadence> otherwise);

}  // namespace stepwell
