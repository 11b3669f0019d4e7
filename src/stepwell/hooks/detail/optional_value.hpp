// SPDX-License-Identifier: Apache-2.0
//
// Fetched values that may be empty: `std::optional` results of steps that do not produce a value in each run.
#pragma once

#include <concepts>
#include <optional>

namespace stepwell::detail {

template<class T>
inline constexpr bool is_optional = false;
template<class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Returns true unless `value` is an empty optional.
template<class Value>
[[nodiscard]] constexpr bool is_present(const Value& value) noexcept {
  if constexpr (is_optional<Value>) {
    return value.has_value();
  } else {
    return true;
  }
}

/// Returns the value in an optional, or a value that is none. @pre `is_present(value)`.
template<class Value>
[[nodiscard]] constexpr const auto& present(const Value& value) noexcept {
  if constexpr (is_optional<Value>) {
    return *value;
  } else {
    return value;
  }
}

/// Returns a number, or the number in an optional or a similar type.
template<class Value>
[[nodiscard]] std::optional<double> as_number(const Value& value) {
  if constexpr (requires { *value, value.has_value(); }) {
    return value.has_value() ? std::optional(static_cast<double>(*value)) : std::nullopt;
  } else {
    static_assert(std::convertible_to<Value, double>, "stepwell: this hook watches a number, or an optional one");
    return static_cast<double>(value);
  }
}

}  // namespace stepwell::detail
