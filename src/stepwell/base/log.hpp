// SPDX-License-Identifier: Apache-2.0
//
// The one sink for everything these libraries say to people: every "warning", "loudly", "logged" goes here.
#pragma once

#include <functional>
#include <string_view>

namespace stepwell {

enum class log_level { debug, info, warning, error };

[[nodiscard]] std::string_view to_string(log_level level) noexcept;

/// Receives one whole message without a line end. It must not throw, log, or replace the sink.
/// @threads Called from any thread, one call at a time.
using log_sink = std::function<void(log_level, std::string_view)>;

/// Says `message` to the sink in force, if `level` is at or above the threshold.
/// @threads Any.
void log(log_level level, std::string_view message);

/// Replaces the sink (an empty one: standard error) and gives back the one before. Standard error gets control characters
/// escaped; other sinks get each message as it is.
/// @threads Any; when it returns, the old sink is not running and will not be called again.
log_sink set_log_sink(log_sink sink);

/// Messages below `level` are dropped; `info` at first. Gives back the threshold before.
log_level set_log_level(log_level level) noexcept;

inline void log_debug(std::string_view message) { log(log_level::debug, message); }
inline void log_info(std::string_view message) { log(log_level::info, message); }
inline void log_warning(std::string_view message) { log(log_level::warning, message); }
inline void log_error(std::string_view message) { log(log_level::error, message); }

}  // namespace stepwell
