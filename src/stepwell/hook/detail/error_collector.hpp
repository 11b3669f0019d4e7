// SPDX-License-Identifier: Apache-2.0
//
// Internal: several things to do, all of them, whatever fails in between.
#pragma once

#include <exception>

namespace stepwell::detail {

/// Remembers the first of several failures and logs the others.
class error_collector {
public:
  template<class Action>
  void attempt(Action&& action) noexcept {
    try {
      action();
    } catch (...) { add(std::current_exception()); }
  }

  void add(std::exception_ptr failure) noexcept;

  [[nodiscard]] const std::exception_ptr& get() const noexcept { return first_; }
  /// Throws the first one, if there was one.
  void rethrow() const {
    if (first_) { std::rethrow_exception(first_); }
  }

private:
  std::exception_ptr first_;
};

/// Logs `failure`, of what was done `during` this.
void log_exception(const char* during, const std::exception_ptr& failure) noexcept;

/// Does what must not throw where it is done: what it throws is logged.
template<class Action>
void log_failure(const char* during, Action&& action) noexcept {
  try {
    action();
  } catch (...) { log_exception(during, std::current_exception()); }
}

}  // namespace stepwell::detail
