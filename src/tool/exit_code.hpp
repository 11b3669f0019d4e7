// SPDX-License-Identifier: Apache-2.0
//
// The exit codes of the program, and the selection of one for an error.
#pragma once

#include "stepwell/base/error.hpp"

namespace stepwell::tool {

/// The result of a command, and the exit code of the process. Documented in docs/how_to/tool.md: never renumber.
enum class exit_code : int {
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
[[nodiscard]] constexpr exit_code worse(exit_code a, exit_code b) noexcept {
  const auto rank = [](exit_code one) {
    return one == exit_code::unsupported ? 2 * static_cast<int>(exit_code::damaged) - 1 : 2 * static_cast<int>(one);
  };
  return rank(a) < rank(b) ? b : a;
}

/// Returns the result of a command that fails with an error of this kind.
[[nodiscard]] constexpr exit_code exit_code_of(errc kind) noexcept {
  switch (kind) {
    case errc::data_loss:
    case errc::truncated: return exit_code::damaged;
    case errc::unimplemented: return exit_code::unsupported;
    case errc::invalid_argument: return exit_code::usage;
    case errc::failed_precondition: return exit_code::held;
    default: return exit_code::unreadable;
  }
}

}  // namespace stepwell::tool
