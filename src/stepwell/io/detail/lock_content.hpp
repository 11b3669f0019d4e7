// SPDX-License-Identifier: Apache-2.0
//
// Private: the content of a lock file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::io {
class file_system;
}

namespace stepwell::io::detail {

/// The longest content of a lock file, in bytes.
inline constexpr std::size_t longest_lock_content = 512;

/// The advice for a lock that this process holds already. A destroyed session may hold it, because its last checkpoint is still written.
inline constexpr std::string_view close_first =
    "close the other session or writer first; if it is an awaited session that was destroyed without async_close, wait for its "
    "release_handle()";

/// The content of a lock file: the process that locked it last.
struct lock_content {
  std::string pid;  ///< In decimal.
  std::string host;
  std::string since;      ///< UTC: "2026-01-31T09:30:00".
  bool is_whole = false;  ///< False if the end is missing.
};

/// Returns the line that a lock file contains: "process 12 on host a since 2026-01-31T09:30:00Z".
[[nodiscard]] std::string to_line(const lock_content& content);

/// Returns the content of a lock file that this process locks now.
[[nodiscard]] lock_content own_lock_content();

/// Returns the parts of the content of a lock file. Returns nothing if `text` is neither a line of `to_line` nor the beginning of one. An
/// empty text is such a beginning. Zero bytes may follow. A power failure can leave all of these.
[[nodiscard]] std::optional<lock_content> parse_lock_content(std::string_view text);

/// Returns the process that is the newest writer of `directory`, see `fenced_directory`. Empty if the directory has no fence.
[[nodiscard]] std::optional<lock_content> fence_owner(file_system& files, const std::string& directory);

}  // namespace stepwell::io::detail
