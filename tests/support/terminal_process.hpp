// SPDX-License-Identifier: Apache-2.0
//
// A child process whose standard input, output and error are a pseudo terminal.
#pragma once

#include "support/catch.hpp"
#include "support/word_pointers.hpp"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>
#include <string>
#include <thread>
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
  const auto arguments = pointers_to(words);
  const auto variables = pointers_to(environment);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  int inner_end = -1;
  REQUIRE(::openpty(&terminal, &inner_end, nullptr, nullptr, &size) == 0);
  const pid_t id = ::fork();
  REQUIRE(id >= 0);
  if (id == 0) {
    ::close(terminal);
    ::login_tty(inner_end);
    ::execve(arguments.front(), arguments.data(), variables.data());
    ::_exit(127);
  }
  terminal_output made;
  // Writes a zero after the output of the process. If the terminal were closed at the end of the process, the kernel could drop the output.
  std::thread waiting([&made, id, inner_end] {
    ::waitpid(id, &made.status, 0);
    const char end = 0;
    static_cast<void>(!::write(inner_end, &end, 1));
  });
  char one = 0;
  while (::read(terminal, &one, 1) == 1 && one != 0) { made.text += one; }
  waiting.join();
  ::close(inner_end);
  ::close(terminal);
  return made;
}

}  // namespace stepwell::test
