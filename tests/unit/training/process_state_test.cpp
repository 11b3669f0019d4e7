// SPDX-License-Identifier: Apache-2.0
//
// Sessions in a process that changes its working directory, whose directories are moved, or that has children made by fork.
#include "support/catch.hpp"
#include "support/checkpoint_files.hpp"
#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/function_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/summary/metric_writer.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace sw = stepwell;
namespace fs = std::filesystem;
using sw::test::counting_model;
using sw::test::names_in;
using sw::test::temporary_directory;

namespace {

/// Trains six steps in `directory`. Saves a checkpoint after step 3, and then calls `between`.
void train(const std::string& directory, const std::function<void()>& between) {
  counting_model model;
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory,
       .metrics = {std::make_shared<sw::summary::csv_writer>(directory + "/metrics.csv")},
       .saves = {.save_steps = 2},
       .summaries = {.save_steps = 1},
       .step_counter = {.every_n_steps = sw::none}},
      sw::summaries(sw::summary::scalar("count", [](const int& count) { return static_cast<double>(count); })),
      sw::best_checkpoint_hook{[](const int& count) { return static_cast<double>(-count); }}, sw::stop_at_step(6));
  for (const auto& step : session.steps()) {
    if (step.global_step != 3) { continue; }
    session.checkpoint_now();  // no save is in flight during the call
    between();
  }
  session.close();
}

/// Restores the working directory of the process.
struct working_directory {
  fs::path before = fs::current_path();
  working_directory() = default;
  working_directory(const working_directory&) = delete;
  working_directory& operator=(const working_directory&) = delete;
  ~working_directory() { fs::current_path(before); }
};

/// Runs `body` in a child process while a session is open, and returns the exit code of the child. The child is killed after a minute.
int code_of_child(const std::string& directory, const std::function<void(pid_t child)>& body) {
  int status = 0;
  train(directory, [&] {
    const auto child = ::fork();
    if (child == 0) { ::alarm(60); }
    body(child);
    if (child != 0) { REQUIRE(::waitpid(child, &status, 0) == child); }
  });
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a relative directory stays the same directory when the working directory changes", "[training][process]") {
  const temporary_directory directory;
  const working_directory restored;
  fs::create_directories(directory / "other/run");
  fs::current_path(directory.path());
  train("run", [&] { fs::current_path(directory / "other"); });
  CHECK(names_in(directory / "other/run").empty());
  CHECK(sw::latest_checkpoint(directory / "run") == directory / "run/model.ckpt-6");
  CHECK(fs::exists(directory / "run/stepwell.ending"));
  CHECK(fs::exists(directory / "run/best/model.ckpt-6.index"));
}

TEST_CASE("the best state is restored from a relative directory of its hooks after the working directory changed", "[training][process]") {
  const temporary_directory directory;
  const working_directory restored;
  fs::create_directories(directory / "other");
  fs::current_path(directory.path());
  counting_model model;
  const auto watched = [](const int& count) { return static_cast<double>(count); };
  auto session = sw::monitored_training_session(
      model, {.step_counter = {.every_n_steps = sw::none}}, sw::best_checkpoint_hook{{.directory = "kept"}, watched},
      sw::early_stopping_hook{{.patience = 100, .restore_best = true, .best_directory = "kept"}, watched}, sw::stop_at_step(6));
  for (const auto& step : session.steps()) {
    if (step.global_step == 3) { fs::current_path(directory / "other"); }
  }
  CHECK_NOTHROW(session.close());
  CHECK(names_in(directory / "other").empty());
}

TEST_CASE("an empty directory in place of a moved one is not written to, and the session says that its directory was moved",
          "[training][process]") {
  const temporary_directory directory;
  const bool is_replaced = GENERATE(true, false);
  const auto moves = [&] {
    fs::rename(directory / "run", directory / "moved");
    if (is_replaced) { fs::create_directory(directory / "run"); }
  };
  CHECK_THROWS_WITH(train(directory / "run", moves), ContainsSubstring("removed"));
  CHECK(fs::exists(directory / "run") == is_replaced);
  if (is_replaced) { CHECK(names_in(directory / "run").empty()); }
}

TEST_CASE("a child made by fork that leaves the session by an exception, or ends, leaves the session and the directory to its parent",
          "[training][process]") {
  const temporary_directory directory;
  const auto run = directory / "run";
  const bool throws = GENERATE(true, false);
  int code = -1;
  try {
    code = code_of_child(run, [&](pid_t child) {
      if (child == 0 && throws) { throw std::runtime_error("in the child"); }
      if (child == 0) { ::_exit(7); }
    });
  } catch (const std::runtime_error&) { ::_exit(7); }  // the child, whose session was destroyed
  CHECK(code == 7);
  CHECK(sw::latest_checkpoint(run) == run + "/model.ckpt-6");
  train(run, [] {});  // the directory is not locked
}

TEST_CASE("a session cannot be closed in a child made by fork", "[training][process]") {
  const temporary_directory directory;
  counting_model model;
  auto session = sw::monitored_training_session(model, {.checkpoint_dir = directory.path()}, sw::stop_at_step(2));
  session.run();
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(60);
    try {
      session.close();
    } catch (const sw::failed_precondition_error&) { ::_exit(7); }
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  session.close();
  CHECK(sw::latest_checkpoint(directory.path()) == directory / "model.ckpt-1");
}

TEST_CASE("a directory is free after close although a child made by fork still lives", "[training][process]") {
  const temporary_directory directory;
  pid_t child = 0;
  train(directory / "run", [&] {
    child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
  });
  CHECK_NOTHROW(train(directory / "run", [] {}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}
