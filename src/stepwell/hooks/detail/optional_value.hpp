// SPDX-License-Identifier: Apache-2.0
//
// Fetched values that may be empty (`std::optional` results of steps that do not produce a value in each run), and fetched values as numbers.
#pragma once

#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

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

/// A type that converts to a number: an arithmetic type, or a type such as `Eigen::half`, which converts to float.
template<class T>
concept number_like = std::is_constructible_v<double, const T&> || std::is_constructible_v<float, const T&>;

/// Returns the number of a tensor with one element.
/// @errors `invalid_argument_error` if the tensor has another number of elements, or if its element is not a real number.
[[nodiscard]] double only_number(const elements_view& tensor);
[[nodiscard]] double only_number(const lazy_view& tensor);

/// Returns a number as a double: a number, an enumerator, or the element of a tensor with one element.
/// @errors Those of `only_number`.
template<class Value>
[[nodiscard]] double to_number(const Value& value) {
  if constexpr (lazy_tensor<Value>) {
    return detail::only_number(lazy_view(value));
  } else if constexpr (std::is_enum_v<Value>) {
    return static_cast<double>(static_cast<std::underlying_type_t<Value>>(value));
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return detail::widened(value);
  } else if constexpr (std::is_constructible_v<double, const Value&>) {
    return static_cast<double>(value);
  } else if constexpr (number_like<Value>) {
    return detail::widened(static_cast<float>(value));
  } else if constexpr (requires { tensor_adapter<Value>::number(value); }) {
    return tensor_adapter<Value>::number(value);
  } else {
    static_assert(adapted_tensor<Value>,
                  "stepwell: this value must be a number, a tensor with one element, or a std::optional of one of these; if it is complex "
                  "or has several elements, give a function that returns one number of it, such as its absolute value or its mean");
    return detail::only_number(detail::elements_of(value));
  }
}

/// A contiguous range of numbers.
template<class T>
concept number_range = requires(const T& range) {
  { *std::data(range) } -> number_like;
  std::size(range);
};

/// Returns the elements of a contiguous range as doubles.
template<number_range Range>
[[nodiscard]] std::vector<double> to_numbers(const Range& range) {
  std::vector<double> numbers;
  for (const auto& element : std::span(std::data(range), std::size(range))) { numbers.push_back(detail::to_number(element)); }
  return numbers;
}

/// Returns `to_number(value)`, or the number in an optional or a similar type.
/// @errors Those of `to_number`.
template<class Value>
[[nodiscard]] std::optional<double> as_number(const Value& value) {
  if constexpr (requires { *value, value.has_value(); }) {
    return value.has_value() ? std::optional(detail::to_number(*value)) : std::nullopt;
  } else {
    return detail::to_number(value);
  }
}

}  // namespace stepwell::detail
