// SPDX-License-Identifier: Apache-2.0
//
// Elements of a tensor whose type is known at run time only.
#pragma once

#include "stepwell/base/detail/visit_dtype.hpp"

#include <fmt/format.h>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace stepwell::tool {

using stepwell::detail::element_at;
using stepwell::detail::stored_number;
using stepwell::detail::to_double;
using stepwell::detail::to_float;
using stepwell::detail::visit_dtype;

template<class T>
inline constexpr bool is_complex_element = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Returns all digits of the element: parsing the text gives the same value. Examples: "true", "0.1", "1+2j".
template<class T>
[[nodiscard]] std::string element_text(T value) {
  if constexpr (is_complex_element<T>) {
    return fmt::format("{}{:+}j", value.real(), value.imag());
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    return fmt::format("{}", to_float(value));
  }
}

}  // namespace stepwell::tool
