// SPDX-License-Identifier: Apache-2.0
//
// A child process that prints lines and ends when its input is closed.
#pragma once

#include "support/catch.hpp"
#include "support/word_pointers.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <string>
#include <vector>

extern char** environ;

namespace stepwell::test {

class child_process {
public:
  /// Starts the program with its arguments. `words` holds the program, then the arguments.
  explicit child_process(std::vector<std::string> words) {
    std::array<int, 2> to{};
    std::array<int, 2> from{};
    REQUIRE(::pipe2(to.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(from.data(), O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    const auto arguments = pointers_to(words);
    REQUIRE(::posix_spawn(&id_, arguments.front(), &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    input_ = to[1];
    output_ = from[0];
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process() {
    if (id_ != 0) { static_cast<void>(end(SIGKILL)); }
    ::close(output_);
  }

  [[nodiscard]] pid_t id() const { return id_; }

  void send(int signal) const { ::kill(id_, signal); }

  /// Blocks until the process prints a line, and returns the line.
  [[nodiscard]] std::string line() const {
    std::string said;
    char one = 0;
    while (::read(output_, &one, 1) == 1 && one != '\n') { said += one; }
    return said;
  }

  /// Blocks until the process ends, with its input still open. Returns the wait status.
  [[nodiscard]] int wait() {
    int how = 0;
    ::waitpid(id_, &how, 0);
    id_ = 0;
    ::close(input_);
    return how;
  }

  /// Sends `signal` unless it is 0, and closes the input of the process. Blocks until the process ends and returns the
  /// wait status.
  int end(int signal) {
    if (signal != 0) { send(signal); }
    ::close(input_);
    int how = 0;
    ::waitpid(id_, &how, 0);
    id_ = 0;
    return how;
  }

private:
  pid_t id_ = 0;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace stepwell::test
