// SPDX-License-Identifier: Apache-2.0
//
// The environment of a command: output streams, file system, and clock. Tests provide their own.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/status.hpp"
#include "stepwell/io/file_system.hpp"

#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>

namespace stepwell::tool {

/// The environment of a command.
struct console {
  std::ostream& out;
  std::ostream& err;
  int width = 80;        ///< Columns of the terminal.
  bool colours = false;  ///< True if `out` supports colours.
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::shared_ptr<stepwell::clock> time = system_clock();
  std::stop_token stop = {};  ///< Ends commands that would run forever.
};

/// The result of a command, which is the exit code of the process. Documented in docs/how_to/tool.md: never renumber.
enum class outcome : int {
  good = 0,         ///< Done without findings.
  differs = 1,      ///< `inspect --diff`: the checkpoints are different.
  usage = 2,        ///< The command line is invalid.
  damaged = 3,      ///< Bytes are damaged or missing, or a file is truncated.
  unreadable = 4,   ///< The file does not exist or cannot be read; the state of its bytes is unknown.
  held = 5,         ///< Another process holds the directory.
  unsupported = 6,  ///< Written for a later reader, or of an unsupported kind; the bytes may be intact.
};

/// Returns the worse of two results, for commands that read several files: `unsupported` is better than `damaged`; otherwise the greater
/// number is worse.
[[nodiscard]] constexpr outcome worse(outcome a, outcome b) noexcept {
  const auto rank = [](outcome one) {
    return one == outcome::unsupported ? 2 * static_cast<int>(outcome::damaged) - 1 : 2 * static_cast<int>(one);
  };
  return rank(a) < rank(b) ? b : a;
}

/// Returns the result of a command that fails with an error of this kind.
[[nodiscard]] constexpr outcome outcome_of(errc kind) noexcept {
  switch (kind) {
    case errc::data_loss:
    case errc::truncated: return outcome::damaged;
    case errc::unimplemented: return outcome::unsupported;
    case errc::invalid_argument: return outcome::usage;
    case errc::failed_precondition: return outcome::held;
    default: return outcome::unreadable;
  }
}

/// Colours and styles of text.
enum class ink { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// Returns `text` between the control codes of a colour, or unchanged if `to` has no colours.
[[nodiscard]] std::string paint(const console& to, ink colour, std::string_view text);

}  // namespace stepwell::tool
