// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/optional_value.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <fmt/format.h>
#include <array>
#include <cstddef>

namespace stepwell::detail {

namespace {

void throw_unless_one(std::size_t size, dtype type) {
  if (size == 1) { return; }
  throw invalid_argument_error(
      fmt::format("a hook reads this value as one number, but the value is a tensor with {} elements of {}", size, to_string(type)));
}

}  // namespace

double only_number(const elements_view& tensor) {
  const auto size = size_of(tensor.dtype);
  throw_unless_one(size == 0 ? 0 : tensor.bytes.size() / size, tensor.dtype);
  return kernel::number_at(tensor, 0);
}

double only_number(const lazy_view& tensor) {
  throw_unless_one(tensor.size, tensor.dtype);
  std::array<std::byte, largest_element> memory{};
  const auto element = std::span(memory).first(size_of(tensor.dtype));
  tensor.evaluate(0, element);
  return kernel::number_at({tensor.dtype, element}, 0);
}

}  // namespace stepwell::detail
