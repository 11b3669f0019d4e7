// SPDX-License-Identifier: Apache-2.0
//
// Tests that only one process at a time can train in a directory, and that the error names the other process.
#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <string>

namespace sw = stepwell;
using sw::test::child_process;
using sw::test::counting_model;
using sw::test::temporary_directory;

TEST_CASE("a directory another process trains in is refused, naming that process, until it ends", "[fault][session][lock]") {
  const temporary_directory directory;
  child_process other({STEPWELL_HOLD_DIRECTORY, directory.path()});
  REQUIRE(other.line() == "holding");
  counting_model model;
  try {
    auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
    FAIL("two processes train in one directory");
  } catch (const sw::failed_precondition_error& refused) {
    const std::string text = refused.what();
    CAPTURE(text);
    CHECK(text.find("process " + std::to_string(other.id()) + " ") != std::string::npos);
    CHECK(text.find(directory.path()) != std::string::npos);
    CHECK(text.find("stop that process first") != std::string::npos);
  }
  const bool is_killed = GENERATE(false, true);
  const int how = other.end(is_killed ? SIGKILL : 0);
  CHECK((is_killed ? WIFSIGNALED(how) : WIFEXITED(how) && WEXITSTATUS(how) == 0));
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
  session.close();
}

TEST_CASE("a directory this process trains in is refused to another one", "[fault][session][lock]") {
  const temporary_directory directory;
  counting_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()});
  child_process other({STEPWELL_HOLD_DIRECTORY, directory.path()});
  CHECK(other.line().find("process " + std::to_string(::getpid()) + " ") != std::string::npos);
  const int how = other.end(0);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 3));
  session.close();
}
