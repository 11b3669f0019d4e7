// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong, as a value: an error code, what was tried, and where. Nothing here throws.
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Why an operation failed. Values are stable (they appear in logs); 1 to 16 are TensorFlow's own.
enum class errc {
  cancelled = 1,            ///< Somebody asked to stop waiting; repeat it if you still want it.
  unknown = 2,              ///< No better word; read the message.
  invalid_argument = 3,     ///< The call can never work as written; mend the caller.
  deadline_exceeded = 4,    ///< Not done in time; raise the limit, or find what is slow.
  not_found = 5,            ///< The file, tensor or name is not there; check its spelling.
  already_exists = 6,       ///< It must not be there yet; choose another name.
  permission_denied = 7,    ///< The system refuses; mend the rights.
  resource_exhausted = 8,   ///< Disk or memory is full; make room. Never retried.
  failed_precondition = 9,  ///< Not in this state; do first what the message names.
  aborted = 10,             ///< Given up for a passing reason; recovery retries it.
  out_of_range = 11,        ///< Past the end; from a source: end of data.
  unimplemented = 12,       ///< Legal, but not supported here.
  internal = 13,            ///< A promise of stepwell's own is broken; report it.
  unavailable = 14,         ///< Not reachable now; recovery retries it.
  data_loss = 15,           ///< Bytes are damaged and must not be used.
  nan_loss = 100,           ///< A watched value is NaN or infinite.
  stop_iteration = 101,     ///< A step function asked to leave the loop.
  truncated = 102,          ///< Input ends inside something; retry once more bytes arrive, else it is data loss.
};

[[nodiscard]] const std::error_category& stepwell_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc code) noexcept;

/// The name of a code as it appears in logs, e.g. `data_loss`.
[[nodiscard]] std::string_view to_string(errc code) noexcept;

/// One failure: the kind, a sentence (what was tried, what happened, what to do), and the file, tensor or
/// offset it is about (may be empty).
struct status {
  errc code = errc::unknown;
  std::string message;
  std::string place;

  status() = default;
  status(errc code_, std::string message_, std::string place_ = {}) : code(code_), message(std::move(message_)), place(std::move(place_)) {}

  /// "place: message (code)", for people.
  [[nodiscard]] std::string to_string() const;
};

/// The status for `errno_value` met while doing `what` on `place`; ENOSPC and EDQUOT are `resource_exhausted`.
[[nodiscard]] status status_from_errno(int errno_value, std::string_view what, std::string place);

}  // namespace stepwell

template<>
struct std::is_error_code_enum<stepwell::errc> : std::true_type {};
