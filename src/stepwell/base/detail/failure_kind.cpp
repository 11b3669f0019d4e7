// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/failure_kind.hpp"

namespace stepwell::detail {

std::optional<errc> kind_of(const std::exception_ptr& failure) noexcept {
  if (failure == nullptr) { return std::nullopt; }
  try {
    std::rethrow_exception(failure);
  } catch (const error& known) { return known.kind(); } catch (...) {
    return std::nullopt;
  }
}

}  // namespace stepwell::detail
