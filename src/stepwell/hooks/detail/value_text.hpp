// SPDX-License-Identifier: Apache-2.0
//
// Values as people read them in a log line.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace stepwell {

/// Six significant digits, no scientific notation for small values (contract HOOK-LOG-8).
[[nodiscard]] std::string number_text(double value);
/// How many elements of a tensor are shown.
inline constexpr std::size_t shown_elements = 6;
/// "[1 2 3]"; the first six elements of more, then "..." and the shape. Bytes behind those are not looked at.
[[nodiscard]] std::string tensor_text(const tensor_view& tensor);

/// A number, text, or tensor in one line.
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
  } else {
    static_assert(variable_like<Value>, "stepwell: only numbers, text and tensors can be shown");
    return tensor_text(stepwell::view_of(value));
  }
}

}  // namespace stepwell
