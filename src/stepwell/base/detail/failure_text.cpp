// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/failure_text.hpp"

#include <cxxabi.h>
#include <boost/core/demangle.hpp>

namespace stepwell::detail {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& known) { return known.what(); } catch (...) {
    const auto* const type = abi::__cxa_current_exception_type();
    return type == nullptr ? "an exception of unknown type" : "an exception of type " + boost::core::demangle(type->name());
  }
}

}  // namespace stepwell::detail
