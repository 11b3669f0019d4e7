// SPDX-License-Identifier: Apache-2.0
//
// Parses a command line, runs the command, and returns its exit code.
#pragma once

#include "tool/output.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

/// Runs one command line, given without the name of the program. Never throws: writes failures to `to.err`. Log messages of the library
/// during the run are written there, too.
[[nodiscard]] exit_code run(std::vector<std::string> arguments, console& to) noexcept;

}  // namespace stepwell::tool
