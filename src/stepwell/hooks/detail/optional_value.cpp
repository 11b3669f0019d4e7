// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/optional_value.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/kernel/statistics.hpp"

#include <fmt/format.h>

namespace stepwell::detail {

double only_number(const elements_view& tensor) {
  const auto size = size_of(tensor.dtype);
  if (size == 0 || tensor.bytes.size() != size) {
    throw invalid_argument_error(fmt::format("a hook reads this value as one number, but the value is a tensor with {} elements of {}",
                                             size == 0 ? 0 : tensor.bytes.size() / size, to_string(tensor.dtype)));
  }
  return kernel::number_at(tensor, 0);
}

}  // namespace stepwell::detail
