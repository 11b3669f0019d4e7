// SPDX-License-Identifier: Apache-2.0
//
// `stepwell completion`: scripts that complete command lines of `stepwell` in a shell.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tool {

/// An option of a command.
struct described_option {
  std::string name;  ///< With the leading dashes.
  std::string what;
  bool takes_value = false;
};

/// A command, with its options.
struct described_command {
  std::string name;
  std::string what;
  std::vector<described_option> options;
  std::vector<std::string> words = {};  ///< Valid arguments; empty: files and directories.
};

/// Writes the completion script of a shell.
/// @errors `invalid_argument_error` unless the shell is bash, zsh or fish.
void write_completion(std::string_view shell, const std::vector<described_command>& commands, std::ostream& out);

}  // namespace stepwell::tool
