// SPDX-License-Identifier: Apache-2.0
//
// Text of values in log lines.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace stepwell {

/// Returns `value` with six significant digits, without scientific notation for small values.
/// @see contract HOOK-LOG-8
[[nodiscard]] std::string number_text(double value);
/// The maximum number of elements of a tensor that are shown.
inline constexpr std::size_t shown_elements = 6;
/// Returns "[1 2 3]". For a tensor with more than six elements, returns the first six, "..." and the shape; the bytes of the other elements
/// are not read.
[[nodiscard]] std::string tensor_text(const tensor_view& tensor);

/// Returns a number, text, or tensor in one line.
template<class Value>
[[nodiscard]] std::string value_text(const Value& value) {
  if constexpr (std::same_as<Value, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::integral<Value>) {
    return std::to_string(value);
  } else if constexpr (std::floating_point<Value>) {
    return number_text(static_cast<double>(value));
  } else if constexpr (std::convertible_to<const Value&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::is_enum_v<Value>) {
    return stepwell::value_text(static_cast<std::underlying_type_t<Value>>(value));
  } else if constexpr (detail::number_like<Value> && !variable_like<Value>) {
    return number_text(detail::to_number(value));
  } else if constexpr (detail::number_range<Value> && !variable_like<Value>) {
    const auto numbers = detail::to_numbers(value);
    return tensor_text(stepwell::view_of(numbers));
  } else {
    static_assert(variable_like<Value>, "stepwell: only numbers, text and tensors can be shown");
    return tensor_text(stepwell::view_of(value));
  }
}

}  // namespace stepwell
