// SPDX-License-Identifier: Apache-2.0
//
// Private: actions that are all executed, even if some of them fail.
#pragma once

#include <exception>
#include <utility>

namespace stepwell::detail {

/// The first failure of several actions that are all executed, even if some of them fail. Later failures are logged.
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
  /// Throws the first failure, if there is one.
  void rethrow() const {
    if (first_) { std::rethrow_exception(first_); }
  }

private:
  std::exception_ptr first_;
};

/// Logs `failure` as an error. `during` describes the activity that failed.
void log_exception(const char* during, const std::exception_ptr& failure) noexcept;

/// Calls `action`, and logs its exception instead of throwing it.
template<class Action>
void log_failure(const char* during, Action&& action) noexcept {
  try {
    action();
  } catch (...) { log_exception(during, std::current_exception()); }
}

}  // namespace stepwell::detail
