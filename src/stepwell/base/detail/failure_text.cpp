// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/failure_text.hpp"

namespace stepwell::detail {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& known) { return known.what(); } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace stepwell::detail
