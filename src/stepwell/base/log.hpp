// SPDX-License-Identifier: Apache-2.0
//
// The log: one sink receives all messages for users, including all warnings.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stepwell {

enum class log_level { debug, info, warning, error };

[[nodiscard]] std::string_view to_string(log_level level) noexcept;

/// A function that receives one complete message without a line end. A message of a session with a name begins with "[NAME] ". The function
/// must not throw, log, or replace the sink.
/// @threads Called from any thread, one call at a time.
using log_sink = std::function<void(log_level, std::string_view)>;

/// Passes `message` to the current sink if `level` is at or above the threshold (see `set_log_level`).
/// @threads Any.
void log(log_level level, std::string_view message);

/// Replaces the sink and returns the previous one. An empty sink selects standard error. A message that is written to standard error begins
/// with the time in UTC, and its control characters are escaped. A sink that the caller has set gets each message unchanged.
/// @threads Any. Blocks until a running call of the previous sink has ended. Afterwards the previous sink is not called again.
log_sink set_log_sink(log_sink sink);

/// Sets the threshold and returns the previous one. Messages below the threshold are dropped. The initial threshold is `info`.
log_level set_log_level(log_level level) noexcept;

/// A function that receives each message in addition to the sink, as long as the object exists. The function must obey the rules of
/// `log_sink`.
/// @threads Constructor and destructor may be called on any thread. The destructor blocks until a running call of the function has ended.
class log_listener {
public:
  explicit log_listener(log_sink listen);
  log_listener(const log_listener&) = delete;
  log_listener& operator=(const log_listener&) = delete;
  ~log_listener();

private:
  log_sink listen_;
};

/// Puts "[NAME] " before each message that this thread logs while the object exists. If the name is empty, the object has no effect. Scopes
/// may be nested; the innermost name that is not empty is used. A task that this thread posts to an `io::pool` while the object exists logs
/// its messages with the same name.
/// @lifetime `name` must outlive the scope.
class log_scope {
public:
  explicit log_scope(const std::string& name) noexcept;
  log_scope(const log_scope&) = delete;
  log_scope& operator=(const log_scope&) = delete;
  ~log_scope();

private:
  const std::string* before_;
};

/// Returns the name that `log_scope` puts before the messages of this thread, or an empty string if there is none.
[[nodiscard]] const std::string& log_name() noexcept;

/// Writes `text` and a line feed to standard output. The line appears above the progress bars of all sessions, which are displayed on
/// standard error.
/// @threads Any.
void print_line(std::string_view text);

inline void log_debug(std::string_view message) { log(log_level::debug, message); }
inline void log_info(std::string_view message) { log(log_level::info, message); }
inline void log_warning(std::string_view message) { log(log_level::warning, message); }
inline void log_error(std::string_view message) { log(log_level::error, message); }

}  // namespace stepwell
