// SPDX-License-Identifier: Apache-2.0
//
// Internal: several things to do, all of them, whatever fails in between.
#pragma once

#include "stepwell/base/log.hpp"

#include <exception>
#include <string>
#include <utility>

namespace stepwell::detail {

/// Remembers the first of several failures and logs the others.
class first_failure {
public:
  template<class Action>
  void attempt(Action&& action) noexcept {
    try {
      action();
    } catch (...) { add(std::current_exception()); }
  }

  void add(std::exception_ptr failure) noexcept {
    if (!first_) {
      first_ = std::move(failure);
      return;
    }
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& later) { log_error(std::string("after an earlier failure: ") + later.what()); } catch (...) {
      log_error("after an earlier failure: an exception of unknown type");
    }
  }

  [[nodiscard]] const std::exception_ptr& get() const noexcept { return first_; }
  /// Throws the first one, if there was one.
  void rethrow() const {
    if (first_) { std::rethrow_exception(first_); }
  }

private:
  std::exception_ptr first_;
};

/// Does what must not throw where it is done: what it throws is logged.
template<class Action>
void log_failure(const char* during, Action&& action) noexcept {
  try {
    action();
  } catch (const std::exception& failure) { log_error(std::string(during) + ": " + failure.what()); } catch (...) {
    log_error(std::string(during) + ": an exception of unknown type");
  }
}

}  // namespace stepwell::detail
