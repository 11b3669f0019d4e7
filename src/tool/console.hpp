// SPDX-License-Identifier: Apache-2.0
//
// What a command talks to: two streams, a disk, a clock. A test gives its own.
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

struct console {
  std::ostream& out;
  std::ostream& err;
  int width = 80;        ///< Columns of the terminal.
  bool colours = false;  ///< Whether `out` shows them.
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::shared_ptr<stepwell::clock> time = system_clock();
  std::stop_token stop = {};  ///< Ends what would go on for ever.
};

/// How a command ended; the exit code of the process. Documented in docs/how_to/tool.md: never renumber.
enum class outcome : int {
  good = 0,         ///< Done, and nothing to complain about.
  differs = 1,      ///< `inspect --diff`: the checkpoints are not the same.
  usage = 2,        ///< The command line makes no sense.
  damaged = 3,      ///< Bytes are damaged, missing or cut short.
  unreadable = 4,   ///< Not there, or the system refuses; nothing is known of the bytes.
  held = 5,         ///< Somebody else holds the directory.
  unsupported = 6,  ///< Written for a later reader, or of a kind that is not read: the bytes may be good.
};

/// Returns the worse of two, for commands that read many files: `unsupported` is less bad than `damaged`, else the greater number.
[[nodiscard]] constexpr outcome worse(outcome a, outcome b) noexcept {
  const auto rank = [](outcome one) {
    return one == outcome::unsupported ? 2 * static_cast<int>(outcome::damaged) - 1 : 2 * static_cast<int>(one);
  };
  return rank(a) < rank(b) ? b : a;
}

/// Returns how a command ends that fails with an error of this kind.
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

enum class ink { plain, bold, dim, red, green, yellow, blue, magenta, cyan };

/// `text` between the codes of a colour, or as it is where there are none.
[[nodiscard]] std::string paint(const console& to, ink colour, std::string_view text);

}  // namespace stepwell::tool
