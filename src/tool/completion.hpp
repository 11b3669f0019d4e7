// SPDX-License-Identifier: Apache-2.0
//
// `stepwell completion`: what a shell needs to complete our command lines.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::tool {

struct described_option {
  std::string name;  ///< With its dashes.
  std::string what;
  bool takes_value = false;
};

struct described_command {
  std::string name;
  std::string what;
  std::vector<described_option> options;
  std::vector<std::string> words = {};  ///< That its argument may be; none: files and directories.
};

/// Writes the script of a shell. @errors `invalid_argument_error` for another shell than bash, zsh and fish.
void write_completion(std::string_view shell, const std::vector<described_command>& commands, std::ostream& out);

}  // namespace stepwell::tool
