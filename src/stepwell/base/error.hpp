// SPDX-License-Identifier: Apache-2.0
//
// Failures as values (`status`, `result`) and as exceptions. Each `errc` except `truncated` has its own exception type. The layers `base`,
// `format` and `io` return failures of data and disks as values, and throw for wrong arguments. `checkpoint` and higher layers throw.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace stepwell {

/// The reason why an operation failed. The values are stable, because they appear in logs. Values 1 to 16 are those of TensorFlow.
enum class errc {
  cancelled = 1,            ///< The operation was cancelled on request; repeat it if its result is still needed.
  unknown = 2,              ///< No other code applies; read the message.
  invalid_argument = 3,     ///< The call can never succeed with these arguments; correct the caller.
  deadline_exceeded = 4,    ///< The operation took too long; raise the limit, or find the cause of the delay.
  not_found = 5,            ///< The file, tensor or name does not exist; check its spelling.
  already_exists = 6,       ///< The name must not exist yet; choose another name.
  permission_denied = 7,    ///< The system denies access; correct the permissions.
  resource_exhausted = 8,   ///< Disk or memory is full; free some space. stepwell never retries the operation.
  failed_precondition = 9,  ///< The operation is not possible in this state; first do the action that the message names.
  aborted = 10,             ///< The operation was aborted by a transient failure; a recovery retries the operation.
  out_of_range = 11,        ///< The position is past the end. A `step` or a `peek` throws it to signal the end of the data.
  unimplemented = 12,       ///< The operation is legal, but not supported.
  internal = 13,            ///< An invariant of stepwell is broken; report a bug.
  unavailable = 14,         ///< A resource cannot be reached now; a recovery retries the operation.
  data_loss = 15,           ///< Bytes are damaged and must not be used.
  nan_loss = 100,           ///< A watched value is NaN or infinite.
  stop_iteration = 101,     ///< A step function requested the end of the loop.
  truncated = 102,          ///< The input ends inside an item; retry when more bytes have arrived. If none can arrive, data is lost.
};

[[nodiscard]] const std::error_category& stepwell_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc code) noexcept;

/// Returns the name of a code as it appears in logs, for example `data_loss`.
[[nodiscard]] std::string_view to_string(errc code) noexcept;

/// One failure: its code, a message, and its place. The message says which operation failed, the reason, and how to correct the
/// problem. The place is a file, a tensor or an offset, and may be empty.
struct status {
  errc code = errc::unknown;
  std::string message;
  std::string place;

  status() = default;
  status(errc code_, std::string message_, std::string place_ = {}) : code(code_), message(std::move(message_)), place(std::move(place_)) {}

  /// Returns "place: message (code)", for users.
  [[nodiscard]] std::string to_string() const;
};

/// Returns the status for `errno_value`, with advice to the user. `tried` describes the operation on `place` that failed, for example
/// "could not open it for reading". ENOSPC and EDQUOT give `resource_exhausted`.
[[nodiscard]] status status_from_errno(int errno_value, std::string_view tried, std::string place);

}  // namespace stepwell

template<>
struct std::is_error_code_enum<stepwell::errc> : std::true_type {};

namespace stepwell {

template<class T>
class result;

namespace detail {
template<class T>
inline constexpr bool is_result = false;
template<class T>
inline constexpr bool is_result<result<T>> = true;
}  // namespace detail

/// A value of type `T`, or the `status` of a failure. Check `ok()` first: `value()` throws a standard exception if this is a failure, and
/// `error()` throws one if this is a success.
template<class T>
class [[nodiscard]] result {
public:
  using value_type = T;

  template<class U = T>
    requires(std::is_constructible_v<T, U &&> && !detail::is_result<std::remove_cvref_t<U>> &&
             !std::is_same_v<std::remove_cvref_t<U>, status>)
  explicit(!std::is_convertible_v<U&&, T>) result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  result(status failure) : state_(std::in_place_index<1>, std::move(failure)) {}

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  [[nodiscard]] const status& error() const& { return std::get<1>(state_); }
  [[nodiscard]] status&& error() && { return std::get<1>(std::move(state_)); }

private:
  std::variant<T, status> state_;
};

/// Success, or the status of a failure.
template<>
class [[nodiscard]] result<void> {
public:
  using value_type = void;

  result() = default;
  result(status failure) : failure_(std::move(failure)) {}

  [[nodiscard]] bool ok() const noexcept { return !failure_; }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] const status& error() const& { return failure_.value(); }
  [[nodiscard]] status&& error() && { return std::move(failure_).value(); }

private:
  std::optional<status> failure_;
};

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

/// The base class of the exceptions with the code `Code`.
template<errc Code>
class error_of : public error {
public:
  explicit error_of(std::string message, std::string place = {}) : error(status(Code, std::move(message), std::move(place))) {}
  /// Takes message and place from `cause`, and ignores the code of `cause`.
  explicit error_of(status cause) : error(status(Code, std::move(cause.message), std::move(cause.place))) {}
};

/// The exception types. Each type is a class and not an alias of `error_of`, so that the message about an uncaught exception shows a short
/// name.
struct cancelled_error final : error_of<errc::cancelled> {
  using error_of::error_of;
};
struct unknown_error final : error_of<errc::unknown> {
  using error_of::error_of;
};
struct invalid_argument_error final : error_of<errc::invalid_argument> {
  using error_of::error_of;
};
struct deadline_exceeded_error final : error_of<errc::deadline_exceeded> {
  using error_of::error_of;
};
struct not_found_error final : error_of<errc::not_found> {
  using error_of::error_of;
};
struct already_exists_error final : error_of<errc::already_exists> {
  using error_of::error_of;
};
struct permission_denied_error final : error_of<errc::permission_denied> {
  using error_of::error_of;
};
struct resource_exhausted_error final : error_of<errc::resource_exhausted> {
  using error_of::error_of;
};
struct failed_precondition_error final : error_of<errc::failed_precondition> {
  using error_of::error_of;
};
struct aborted_error final : error_of<errc::aborted> {
  using error_of::error_of;
};
struct out_of_range_error final : error_of<errc::out_of_range> {
  using error_of::error_of;
};
struct unimplemented_error final : error_of<errc::unimplemented> {
  using error_of::error_of;
};
struct internal_error final : error_of<errc::internal> {
  using error_of::error_of;
};
struct unavailable_error final : error_of<errc::unavailable> {
  using error_of::error_of;
};
struct data_loss_error final : error_of<errc::data_loss> {
  using error_of::error_of;
};
struct nan_loss_error final : error_of<errc::nan_loss> {
  using error_of::error_of;
};
struct stop_iteration final : error_of<errc::stop_iteration> {
  using error_of::error_of;
};

/// Throws the exception type of `cause.code`. Throws `data_loss_error` for `truncated`.
[[noreturn]] void throw_status(status cause);

/// Returns the value of `outcome`. If `outcome` is a failure, throws its status as an exception.
template<class T>
T value_or_throw(result<T>&& outcome) {
  if (!outcome) { throw_status(std::move(outcome).error()); }
  if constexpr (!std::is_void_v<T>) { return std::move(outcome).value(); }
}

}  // namespace stepwell
