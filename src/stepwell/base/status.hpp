// SPDX-License-Identifier: Apache-2.0
//
// Failures as values: an error code, a message, and the place of the failure. Nothing in this header throws.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

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
  resource_exhausted = 8,   ///< Disk or memory is full; free some of it. Never retried.
  failed_precondition = 9,  ///< The operation is not possible in this state; first do the action that the message names.
  aborted = 10,             ///< The operation was aborted by a transient failure; recovery retries it.
  out_of_range = 11,        ///< The position is past the end; from a source, the end of data.
  unimplemented = 12,       ///< The operation is legal, but not supported.
  internal = 13,            ///< An invariant of stepwell is broken; report a bug.
  unavailable = 14,         ///< A resource cannot be reached now; recovery retries the operation.
  data_loss = 15,           ///< Bytes are damaged and must not be used.
  nan_loss = 100,           ///< A watched value is NaN or infinite.
  stop_iteration = 101,     ///< A step function requested the end of the loop.
  truncated = 102,          ///< Input ends inside an item; retry once more bytes arrive. If none can arrive, it is data loss.
};

[[nodiscard]] const std::error_category& stepwell_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc code) noexcept;

/// Returns the name of a code as it appears in logs, for example `data_loss`.
[[nodiscard]] std::string_view to_string(errc code) noexcept;

/// One failure: its code, a message, and its place. The message says which operation failed, the reason, and how to correct it. The
/// place is a file, a tensor or an offset, and may be empty.
struct status {
  errc code = errc::unknown;
  std::string message;
  std::string place;

  status() = default;
  status(errc code_, std::string message_, std::string place_ = {}) : code(code_), message(std::move(message_)), place(std::move(place_)) {}

  /// Returns "place: message (code)", for users.
  [[nodiscard]] std::string to_string() const;
};

/// Returns the status for `errno_value` after the operation `what` on `place`. ENOSPC and EDQUOT give `resource_exhausted`.
[[nodiscard]] status status_from_errno(int errno_value, std::string_view what, std::string place);

}  // namespace stepwell

template<>
struct std::is_error_code_enum<stepwell::errc> : std::true_type {};
