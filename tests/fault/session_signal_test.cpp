// SPDX-License-Identifier: Apache-2.0
//
// Tests of training processes that SIGTERM ends.
#include "support/catch.hpp"
#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>

#include <sys/wait.h>
#include <csignal>
#include <string>

namespace sw = stepwell;
using sw::test::child_process;
using sw::test::temporary_directory;

TEST_CASE("a process sent SIGTERM leaves a checkpoint of its last step, and ends by itself", "[fault][session][signals]") {
  const temporary_directory directory;
  child_process child({STEPWELL_TRAIN_UNTIL_TOLD, directory.path()});
  REQUIRE(child.line() == "training");
  child.send(SIGTERM);
  const auto said = child.line();
  const int how = child.wait();
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
  const auto reader = sw::latest_whole_checkpoint(directory.path());
  REQUIRE(reader);
  CHECK(said == "stopped by signal at " + std::to_string(*reader->step()));
}

TEST_CASE("a second SIGTERM ends a process that hangs, and what it had saved is whole", "[fault][session][signals]") {
  const temporary_directory directory;
  child_process child({STEPWELL_TRAIN_UNTIL_TOLD, directory.path(), "hang"});
  REQUIRE(child.line() == "training");
  child.send(SIGTERM);
  REQUIRE(child.line() == "ending");
  child.send(SIGTERM);
  const int how = child.wait();
  CHECK((WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM));
  CHECK(sw::latest_whole_checkpoint(directory.path()).has_value());
}
