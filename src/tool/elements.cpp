// SPDX-License-Identifier: Apache-2.0
#include "tool/elements.hpp"

#include <fmt/format.h>

namespace stepwell::tool {

template<class T>
std::string element_text(T value) {
  if constexpr (is_complex_element<T>) {
    return fmt::format("{}{:+}j", value.real(), value.imag());
  } else {
    return fmt::format("{}", value);
  }
}

template std::string element_text(bool);
template std::string element_text(float);
template std::string element_text(double);
template std::string element_text(std::int8_t);
template std::string element_text(std::int16_t);
template std::string element_text(std::int32_t);
template std::string element_text(std::int64_t);
template std::string element_text(std::uint8_t);
template std::string element_text(std::uint16_t);
template std::string element_text(std::uint32_t);
template std::string element_text(std::uint64_t);
template std::string element_text(std::complex<float>);
template std::string element_text(std::complex<double>);

}  // namespace stepwell::tool
