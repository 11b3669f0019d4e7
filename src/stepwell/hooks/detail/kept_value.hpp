// SPDX-License-Identifier: Apache-2.0
//
// The part of a value that a log line shows, kept after the run in which it was fetched.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell {

/// A value in the form that a formatter receives.
struct logged_value {
  std::string text;                             ///< The text in a log line.
  std::optional<double> number = std::nullopt;  ///< The number, if the value is a scalar.
};

/// A number, a text, or the first elements of a tensor with its shape.
/// @cost Storing a number allocates nothing; storing a tensor allocates its shape only.
class kept_value {
public:
  template<class Value>
  void keep(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>) { number_ = static_cast<double>(value); }
    if constexpr (variable_like<const Value>) {
      keep_elements(stepwell::view_of(value));
    } else {
      shown_.dtype = dtype::invalid;
      text_ = stepwell::value_text(value);
    }
  }

  [[nodiscard]] logged_value logged() const;

private:
  void keep_elements(tensor_view tensor);

  static constexpr std::size_t largest_element = 16;

  std::string text_;
  std::optional<double> number_;
  tensor_view shown_;  // type and shape, without bytes
  std::array<std::byte, shown_elements * largest_element> bytes_{};
};

}  // namespace stepwell
