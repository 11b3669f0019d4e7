// SPDX-License-Identifier: Apache-2.0
//
// The end of a session: how it ended, why, and at which step. A session that saves checkpoints also writes this information to a file in
// the directory of its checkpoints, for the next start of the program.
#pragma once

#include "stepwell/protocol/session_signals.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell {

namespace io {
class file_system;
}

/// How a session ended. If an asynchronous session is destroyed before it is closed, no ending is reported.
enum class session_ending {
  interrupted,  ///< A signal, the application's stop token or a time limit ended the loop; another process will continue.
  failed,       ///< A failure or a NaN ended the session, or the close failed.
  finished,     ///< The session was closed for any other reason, for example after the last step.
};

[[nodiscard]] constexpr std::string_view to_string(session_ending how) noexcept {
  switch (how) {
    case session_ending::finished: return "finished";
    case session_ending::interrupted: return "interrupted";
    case session_ending::failed: return "failed";
  }
  return "failed";
}

/// The end of a session.
struct run_ending {
  session_ending how = session_ending::finished;
  stop_reason why = {};          ///< The cause of the end, as `stop_reason()` of the session returns it.
  std::int64_t global_step = 0;  ///< The last step that the session did. If it did none: the step at which it began.
};

/// Returns the end of the last session that saved checkpoints in `directory`. The result is empty in each of these cases: No session has
/// saved checkpoints in the directory. A session is using the directory. The last session was not closed: it was killed, or an asynchronous
/// session was destroyed before its close. A program can use the result to skip a run that is complete:
/// ```
/// if (const auto ended = sw::run_ended("run"); ended && ended->how == sw::session_ending::finished) { return 0; }
/// ```
/// @errors `data_loss_error` if the file with this information is damaged. Errors of the file system.
/// @see `docs/formats/checkpoints.md`, "The ending file"
[[nodiscard]] std::optional<run_ending> run_ended(const std::string& directory);
/// Like the other overload, on another file system.
[[nodiscard]] std::optional<run_ending> run_ended(io::file_system& files, const std::string& directory);

namespace detail {

/// Returns the kind of ending of a session that is closed after a stop with the cause `cause`.
[[nodiscard]] session_ending ending_after(stop_cause cause) noexcept;
/// Writes the ending file of `directory`, durably. @errors Errors of the file system.
void write_ending_file(io::file_system& files, const std::string& directory, const run_ending& ending);
/// Removes the ending file of `directory`, durably, if it exists. @errors Errors of the file system.
void remove_ending_file(io::file_system& files, const std::string& directory);

}  // namespace detail
}  // namespace stepwell
