// SPDX-License-Identifier: Apache-2.0
//
// Conversion of the two options that every saver has (steps, seconds) to one cadence.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace stepwell {

/// The two options of a saver. At most one of them takes effect.
struct cadence_setting {
  std::string_view steps_name;  ///< Name of the option in steps, for messages: "save_checkpoint_steps", for example.
  setting<std::int64_t> steps;
  std::string_view secs_name;  ///< Name of the option in seconds, for messages.
  setting<seconds_value> secs;
};

/// Returns the cadence that the options select, or nullopt if they switch it off. Returns `otherwise` if neither option is set.
/// Setting one option, even to `none` or 0, disables the default of the other.
/// If both are above zero, the seconds are used, and a warning names both options.
/// @errors `invalid_argument_error` that names the option, if it is negative.
/// @see contract CREATE-2 to CREATE-5, decisions D-8 and D-31
[[nodiscard]] std::optional<cadence> choose_cadence(const cadence_setting& said, std::optional<cadence> otherwise);

}  // namespace stepwell
