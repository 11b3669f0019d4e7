// SPDX-License-Identifier: Apache-2.0
//
// Text of values in log lines.
#pragma once

#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
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

namespace detail {

/// The elements of a tensor that are shown.
using first_elements = std::array<std::byte, shown_elements * largest_element>;

/// Stores the type and the shape of a lazy tensor in `to`, and the elements that are shown in `memory`. `to.bytes` refers to `memory`.
template<lazy_tensor Value>
void view_first(const Value& value, tensor_view& to, first_elements& memory) {
  const lazy_view all(value);
  const auto first = std::span(memory).first(std::min(all.size, shown_elements) * size_of(all.dtype));
  if (!first.empty()) { all.evaluate(0, first); }
  tensor_adapter<Value>::copy_shape(value, to.shape);
  to.dtype = all.dtype;
  to.bytes = first;
}

}  // namespace detail

/// Returns a number, text, or tensor in one line.
template<class Value>
[[nodiscard]] std::string value_text(const Value& value) {
  if constexpr (lazy_tensor<Value>) {
    detail::first_elements memory{};
    tensor_view shown;
    detail::view_first(value, shown, memory);
    return tensor_text(shown);
  } else if constexpr (std::same_as<Value, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::integral<Value>) {
    return std::to_string(value);
  } else if constexpr (std::floating_point<Value>) {
    return number_text(detail::widened(value));
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
    if (const auto on_device = detail::elements_on_device(value)) {
      const auto described = on_device->description();
      tensor copy(described.dtype, described.shape);
      on_device->copy_to(copy.bytes());
      return tensor_text(copy.view());
    }
    return tensor_text(stepwell::view_of(value));
  }
}

}  // namespace stepwell
