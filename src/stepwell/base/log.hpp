// SPDX-License-Identifier: Apache-2.0
//
// The log: one sink receives all messages for users, including all warnings.
#pragma once

#include <functional>
#include <string_view>

namespace stepwell {

enum class log_level { debug, info, warning, error };

[[nodiscard]] std::string_view to_string(log_level level) noexcept;

/// A function that receives one complete message without a line end. It must not throw, log, or replace the sink.
/// @threads Called from any thread, one call at a time.
using log_sink = std::function<void(log_level, std::string_view)>;

/// Passes `message` to the current sink, if `level` is at or above the threshold.
/// @threads Any.
void log(log_level level, std::string_view message);

/// Replaces the sink and returns the previous one. An empty sink selects standard error. Messages to standard error have control
/// characters escaped; other sinks get each message unchanged.
/// @threads Any. Waits until a running call of the previous sink has ended; the previous sink is not called again.
log_sink set_log_sink(log_sink sink);

/// Sets the threshold and returns the previous one. Messages below the threshold are dropped. The initial threshold is `info`.
log_level set_log_level(log_level level) noexcept;

inline void log_debug(std::string_view message) { log(log_level::debug, message); }
inline void log_info(std::string_view message) { log(log_level::info, message); }
inline void log_warning(std::string_view message) { log(log_level::warning, message); }
inline void log_error(std::string_view message) { log(log_level::error, message); }

}  // namespace stepwell
