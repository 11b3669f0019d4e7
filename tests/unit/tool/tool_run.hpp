// SPDX-License-Identifier: Apache-2.0
//
// Runs a command line of the tool in this process and returns its output and exit code.
#pragma once

#include "support/catch.hpp"

#include <tool/command_line.hpp>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::test {

struct said {
  tool::exit_code how;
  std::string out;
  std::string err;
};

struct tool_rig {
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::shared_ptr<clock> time = system_clock();
  int width = 80;
  bool colours = false;
  bool ascii = false;
  std::stop_token stop = {};

  [[nodiscard]] said run(std::vector<std::string> arguments) const {
    std::ostringstream out;
    std::ostringstream err;
    tool::console to{
        .out = out, .err = err, .width = width, .colours = colours, .ascii = ascii, .files = files, .time = time, .stop = stop};
    const auto how = tool::run(std::move(arguments), to);
    return {how, out.str(), err.str()};
  }
};

/// Runs the tool on the real file system.
[[nodiscard]] inline said run_tool(std::vector<std::string> arguments) { return tool_rig().run(std::move(arguments)); }

}  // namespace stepwell::test
