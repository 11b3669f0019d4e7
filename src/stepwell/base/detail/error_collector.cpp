// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/error_collector.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/log.hpp"

#include <string>

namespace stepwell::detail {

void log_exception(const char* during, const std::exception_ptr& failure) noexcept try {
  log_error(std::string(during) + ": " + text_of(failure));
} catch (...) {  // no memory for the text
  log_error(during);
}

void error_collector::add(std::exception_ptr failure) noexcept {
  if (first_) {
    log_exception("after an earlier failure", failure);
  } else {
    first_ = std::move(failure);
  }
}

}  // namespace stepwell::detail
