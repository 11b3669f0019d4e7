// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/value_text.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/detail/visit_dtype.hpp"
#include "stepwell/base/tensor.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

namespace stepwell {
namespace {

template<class T>
std::string complex_text(std::complex<T> value) {
  const auto imaginary = number_text(detail::widened(value.imag()));
  return number_text(detail::widened(value.real())) + (imaginary.starts_with('-') ? "" : "+") + imaginary + "j";
}

std::string element_text(const tensor_view& tensor, std::size_t index) {
  std::string text = "?";
  detail::visit_dtype(tensor.dtype, [&]<class T>(std::type_identity<T>) {
    const auto value = detail::element_at<T>(tensor.bytes, index);
    if constexpr (std::is_same_v<T, bool>) {
      text = value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      text = std::to_string(value);
    } else if constexpr (requires { complex_text(value); }) {
      text = complex_text(value);
    } else {
      text = number_text(detail::to_double(value));
    }
  });
  return text;
}

}  // namespace

std::string number_text(double value) {
  const detail::default_float_mode mode;
  if (std::isnan(value)) { return "nan"; }  // without the sign, which has no meaning
  const double size = std::abs(value);
  if (size >= 1e-8 && size < 1e-4) { return fmt::format("{:.10f}", value); }
  return fmt::format("{:.6g}", value);
}

std::string tensor_text(const tensor_view& tensor) {
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  if (tensor.shape.empty()) { return element_text(tensor, 0); }
  std::string text = "[";
  for (std::size_t i = 0; i < std::min(count, shown_elements); ++i) { text.append(i > 0 ? " " : "").append(element_text(tensor, i)); }
  if (count > shown_elements) { return text.append(" ...] of shape ").append(to_string(tensor.shape)); }
  return text.append("]");
}

}  // namespace stepwell
