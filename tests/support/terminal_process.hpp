// SPDX-License-Identifier: Apache-2.0
//
// A child process whose standard input, output and error are a pseudo terminal.
#pragma once

#include "support/catch.hpp"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <vector>

namespace stepwell::test {

/// The output of a process on a terminal, and its end.
struct terminal_output {
  std::string text;
  int status = 0;  ///< The wait status.
};

/// Runs a program on a new terminal until it ends. `words` holds the program, then the arguments. `environment` holds all variables of the
/// program, such as "TERM=xterm".
inline terminal_output run_on_terminal(std::vector<std::string> words, std::vector<std::string> environment, unsigned short columns) {
  const auto pointers_to = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (auto& text : texts) { all.push_back(text.data()); }
    all.push_back(nullptr);
    return all;
  };
  const auto arguments = pointers_to(words);
  const auto variables = pointers_to(environment);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t id = ::forkpty(&terminal, nullptr, nullptr, &size);
  REQUIRE(id >= 0);
  if (id == 0) {
    ::execve(arguments.front(), arguments.data(), variables.data());
    ::_exit(127);
  }
  terminal_output made;
  char part[1024];
  for (;;) {
    const auto count = ::read(terminal, part, sizeof part);  // EIO: no process has the terminal open any more
    if (count > 0) { made.text.append(part, static_cast<std::size_t>(count)); }
    if (count == 0 || (count < 0 && errno != EINTR)) { break; }
  }
  ::waitpid(id, &made.status, 0);
  ::close(terminal);
  return made;
}

}  // namespace stepwell::test
