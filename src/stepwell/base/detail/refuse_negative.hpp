// SPDX-License-Identifier: Apache-2.0
//
// Checks for negative values of options that are counts or durations.
#pragma once

#include "stepwell/base/setting.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepwell::detail {

/// Throws an `invalid_argument_error` that names the option and its value.
[[noreturn]] void throw_negative(std::string_view option, std::int64_t value);
[[noreturn]] void throw_negative(std::string_view option, double value);

/// Throws if an option is negative. An option may be zero or not set.
/// @errors `invalid_argument_error` that names `option`.
template<std::signed_integral Integer>
void refuse_negative(std::string_view option, Integer value) {
  if (value < 0) { throw_negative(option, std::int64_t{value}); }
}
inline void refuse_negative(std::string_view option, double value) {
  if (value < 0) { throw_negative(option, value); }
}
inline void refuse_negative(std::string_view option, seconds_value value) { refuse_negative(option, value.count()); }
template<class T>
void refuse_negative(std::string_view option, const std::optional<T>& value) {
  if (value) { refuse_negative(option, *value); }
}
template<class T>
void refuse_negative(std::string_view option, const setting<T>& value) {
  refuse_negative(option, value.given());
}

}  // namespace stepwell::detail
