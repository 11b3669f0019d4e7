// SPDX-License-Identifier: Apache-2.0
//
// Kills and restarts examples/digits until it ends. The result must be the same as without kills. STEPWELL_KILLS sets the number of kills
// (20), STEPWELL_KILL_SEED selects them.
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "support/word_pointers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

namespace fs = std::filesystem;
using stepwell::test::temporary_directory;

/// One run of the digits program. Without `data`, it renders its data into the run directory.
class digits_process {
public:
  digits_process(const std::string& data, const std::string& run_dir) : output_(run_dir + ".out") {
    std::vector<std::string> words = {STEPWELL_DIGITS, "--run-dir", run_dir,        "--steps", "2000", "--hidden", "32",
                                      "--batch-size",  "32",        "--save-steps", "20"};
    if (!data.empty()) { words.insert(words.end(), {"--data", data}); }
    const auto arguments = stepwell::test::pointers_to(words);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (output_ + ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    REQUIRE(posix_spawn(&id_, STEPWELL_DIGITS, &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  void kill(int signal = SIGKILL) const { ::kill(id_, signal); }

  /// Returns the results of a successful run without the path of its checkpoint, or nothing if the process was killed.
  std::optional<std::string> wait() const {
    int how = 0;
    REQUIRE(waitpid(id_, &how, 0) == id_);
    if (WIFSIGNALED(how)) {
      REQUIRE(WTERMSIG(how) == SIGKILL);
      return std::nullopt;
    }
    INFO(log());
    REQUIRE(WEXITSTATUS(how) == 0);
    std::ifstream in(output_);
    std::string line;
    std::string results;
    while (std::getline(in, line)) {
      if (!line.starts_with("checkpoint=")) { results.append(results.empty() ? "" : "; ").append(line); }
    }
    return results;
  }

private:
  [[nodiscard]] std::string log() const {
    std::ostringstream text;
    text << std::ifstream(output_ + ".log").rdbuf();
    return text.str();
  }

  std::string output_;
  pid_t id_ = 0;
};

std::uint64_t seed_of_this_run() {
  const char* said = std::getenv("STEPWELL_KILL_SEED");
  const auto seed = said != nullptr ? std::strtoull(said, nullptr, 10) : std::random_device{}();
  std::cout << "STEPWELL_KILL_SEED=" << seed << std::endl;
  return seed;
}

int number_of_kills() {
  const char* said = std::getenv("STEPWELL_KILLS");
  return said != nullptr ? std::atoi(said) : 20;
}

std::string undisturbed(const std::string& run_dir) {
  auto line = digits_process("", run_dir).wait();
  REQUIRE(line);
  REQUIRE(line->find("; final step=2000 ") != std::string::npos);
  REQUIRE(line->find("; fingerprint=") != std::string::npos);
  return *line;
}

/// Blocks until `count` files have been created or renamed in `directory`. Returns false after five seconds without
/// such an event.
bool wait_for_file_events(int watch, int count) {
  std::array<char, 4096> buffer;
  while (count > 0) {
    pollfd one{watch, POLLIN, 0};
    if (poll(&one, 1, 5000) != 1) { return false; }
    const auto size = read(watch, buffer.data(), buffer.size());
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof(inotify_event) + event->len;
      --count;
    }
  }
  return true;
}

void no_temporary_files(const std::string& run_dir) {
  for (const auto& entry : fs::directory_iterator(run_dir)) { CHECK(entry.path().filename().string().find("tmp") == std::string::npos); }
}

}  // namespace

TEST_CASE("killed at random instants and started again, training ends as if never disturbed", "[fault][kill]") {
  const temporary_directory directory;
  const auto data = directory / "whole/data";
  const auto begun = std::chrono::steady_clock::now();
  const auto expected = undisturbed(directory / "whole");
  const auto length = std::chrono::steady_clock::now() - begun;
  std::mt19937_64 random(seed_of_this_run());
  std::uniform_int_distribution<std::int64_t> instant(1, length.count() / 8);  // a run is long enough to be killed many times
  int kills = 0;
  int finished = 0;
  const int wanted = number_of_kills();
  for (int run = 0; kills < wanted; ++run) {
    const auto run_dir = directory / ("killed-" + std::to_string(run));
    std::optional<std::string> line;
    while (!line) {
      const digits_process process(data, run_dir);
      if (kills < wanted) {
        std::this_thread::sleep_for(instant(random) * std::chrono::nanoseconds(1));
        process.kill();
        line = process.wait();
        kills += line ? 0 : 1;
      } else {
        line = process.wait();
      }
    }
    CHECK(*line == expected);
    no_temporary_files(run_dir);
    ++finished;
  }
  std::cout << kills << " kills, " << finished << " runs that ended: " << expected << std::endl;
}

TEST_CASE("killed at each file event of the very first save, training starts again and ends the same", "[fault][kill]") {
  const temporary_directory directory;
  const auto data = directory / "whole/data";
  const auto expected = undisturbed(directory / "whole");
  for (int count = 1; count <= 12; ++count) {
    const auto run_dir = directory / ("first-save-" + std::to_string(count));
    fs::create_directory(run_dir);
    const int watch = inotify_init1(IN_CLOEXEC);
    REQUIRE(inotify_add_watch(watch, run_dir.c_str(), IN_CREATE | IN_MOVED_TO | IN_MODIFY) >= 0);
    const digits_process process(data, run_dir);
    CHECK(wait_for_file_events(watch, count));
    process.kill();
    process.wait();
    close(watch);
    const auto line = digits_process(data, run_dir).wait();
    REQUIRE(line);
    CHECK(*line == expected);
    no_temporary_files(run_dir);
  }
}

TEST_CASE("stopped by a signal and started again, training ends as if never disturbed", "[fault][kill]") {
  const temporary_directory directory;
  const auto data = directory / "whole/data";
  const auto expected = undisturbed(directory / "whole");
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto run_dir = directory / ("stopped-by-" + std::to_string(signal));
    fs::create_directory(run_dir);
    const int watch = inotify_init1(IN_CLOEXEC);
    REQUIRE(inotify_add_watch(watch, run_dir.c_str(), IN_CREATE | IN_MOVED_TO | IN_MODIFY) >= 0);
    const digits_process process(data, run_dir);
    CHECK(wait_for_file_events(watch, 20));  // some checkpoints
    process.kill(signal);
    const auto stopped = process.wait();
    close(watch);
    REQUIRE(stopped);
    CHECK(stopped->starts_with("stopped at step "));
    CHECK(digits_process(data, run_dir).wait() == expected);
    no_temporary_files(run_dir);
  }
}
