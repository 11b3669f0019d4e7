// SPDX-License-Identifier: Apache-2.0
//
// From the words of a command line to a command and its exit code.
#pragma once

#include "tool/console.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

/// Runs one command line, without the name of the program. Never throws: what goes wrong is said on `to.err`.
/// What the library logs meanwhile goes there, too.
[[nodiscard]] outcome run(std::vector<std::string> arguments, console& to) noexcept;

}  // namespace stepwell::tool
