// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/value_text.hpp"

#include "stepwell/base/tensor.hpp"
#include "stepwell/kernel/statistics.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>

namespace stepwell {
namespace {

template<class T>
T element(const tensor_view& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template<class T>
std::string complex_text(std::complex<T> value) {
  const auto imaginary = number_text(static_cast<double>(value.imag()));
  return number_text(static_cast<double>(value.real())) + (imaginary.starts_with('-') ? "" : "+") + imaginary + "j";
}

std::string element_text(const tensor_view& tensor, std::size_t index) {
  switch (tensor.dtype) {
    case dtype::qint8:
    case dtype::int8: return std::to_string(element<std::int8_t>(tensor, index));
    case dtype::qint16:
    case dtype::int16: return std::to_string(element<std::int16_t>(tensor, index));
    case dtype::qint32:
    case dtype::int32: return std::to_string(element<std::int32_t>(tensor, index));
    case dtype::int64: return std::to_string(element<std::int64_t>(tensor, index));
    case dtype::quint8:
    case dtype::uint8: return std::to_string(element<std::uint8_t>(tensor, index));
    case dtype::quint16:
    case dtype::uint16: return std::to_string(element<std::uint16_t>(tensor, index));
    case dtype::uint32: return std::to_string(element<std::uint32_t>(tensor, index));
    case dtype::uint64: return std::to_string(element<std::uint64_t>(tensor, index));
    case dtype::boolean: return element<bool>(tensor, index) ? "true" : "false";
    case dtype::complex64: return complex_text(element<std::complex<float>>(tensor, index));
    case dtype::complex128: return complex_text(element<std::complex<double>>(tensor, index));
    default: break;
  }
  return size_of(tensor.dtype) == 0 ? "?" : number_text(kernel::number_at({tensor.dtype, tensor.bytes}, index));
}

}  // namespace

std::string number_text(double value) {
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
