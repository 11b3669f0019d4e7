// SPDX-License-Identifier: Apache-2.0
//
// Exceptions thrown by `checkpoint` and higher layers, one type for each `errc`, and the conversion from a status to an exception.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/base/status.hpp"

#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace stepwell {

/// The base class of all exceptions of stepwell. `what()` returns `status::to_string()` with control characters escaped. `code()` holds
/// an `errc`.
class error : public std::system_error {
public:
  explicit error(status cause);

  [[nodiscard]] errc kind() const noexcept { return cause_.code; }
  [[nodiscard]] const status& cause() const noexcept { return cause_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

private:
  status cause_;
  std::string text_;
};

/// The exception type for failures with the code `Code`.
template<errc Code>
class error_of final : public error {
public:
  explicit error_of(std::string message, std::string place = {}) : error(status(Code, std::move(message), std::move(place))) {}
  /// Takes message and place from `cause`, and ignores its code.
  explicit error_of(status cause) : error(status(Code, std::move(cause.message), std::move(cause.place))) {}
};

using cancelled_error = error_of<errc::cancelled>;
using unknown_error = error_of<errc::unknown>;
using invalid_argument_error = error_of<errc::invalid_argument>;
using deadline_exceeded_error = error_of<errc::deadline_exceeded>;
using not_found_error = error_of<errc::not_found>;
using already_exists_error = error_of<errc::already_exists>;
using permission_denied_error = error_of<errc::permission_denied>;
using resource_exhausted_error = error_of<errc::resource_exhausted>;
using failed_precondition_error = error_of<errc::failed_precondition>;
using aborted_error = error_of<errc::aborted>;
using out_of_range_error = error_of<errc::out_of_range>;
using unimplemented_error = error_of<errc::unimplemented>;
using internal_error = error_of<errc::internal>;
using unavailable_error = error_of<errc::unavailable>;
using data_loss_error = error_of<errc::data_loss>;
using nan_loss_error = error_of<errc::nan_loss>;
using stop_iteration = error_of<errc::stop_iteration>;

/// Throws the exception type of `cause.code`. Throws `data_loss_error` for `truncated`.
[[noreturn]] void throw_status(status cause);

/// Returns the value of `outcome`. Throws its status as an exception if it has no value.
template<class T>
T value_or_throw(result<T>&& outcome) {
  if (!outcome) { throw_status(std::move(outcome).error()); }
  if constexpr (!std::is_void_v<T>) { return std::move(outcome).value(); }
}

}  // namespace stepwell
