// SPDX-License-Identifier: Apache-2.0
//
// Kills a small training program at random moments. After each kill the program is started again. Then every view of
// the directory must name the same newest checkpoint, all events at or below its step must exist, and the best checkpoint must be the best
// state at or below its step.
//
// STEPWELL_KILLS sets the number of kills, STEPWELL_KILL_SEED selects them.
#include "support/bundle_oracle.hpp"
#include "support/catch.hpp"
#include "support/event_oracle.hpp"
#include "support/file_text.hpp"
#include "support/killed_run.hpp"
#include "support/temporary_directory.hpp"
#include "support/word_pointers.hpp"

#include <stepwell/checkpoint/best_checkpoint.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <tool/command_line.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace {

namespace fs = std::filesystem;
namespace sw = stepwell;
using namespace sw::test;
using nlohmann::json;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* said = std::getenv(name);
  return said != nullptr ? std::strtoull(said, nullptr, 10) : otherwise;
}

/// The moment of a kill, and the speed of the process until then.
struct kill_plan {
  int operation = 0;  ///< The process kills itself before this operation of its file system on a path that contains `word`. Zero: never.
  std::string word = {};
  int microseconds = 0;  ///< The process is killed after this time. Zero: never.
  int slow_events = 0;   ///< Additional microseconds for each operation on an event file.
};

/// Runs train_and_be_killed. Returns true if it was killed. Any other failure fails the test.
bool run(const std::string& directory, std::int64_t last_step, const kill_plan& plan) {
  std::vector<std::string> words = {STEPWELL_TRAIN_AND_BE_KILLED,   directory, std::to_string(last_step),
                                    std::to_string(plan.operation), plan.word, std::to_string(plan.slow_events)};
  const auto arguments = pointers_to(words);
  const auto log = directory + ".log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t id = 0;
  REQUIRE(posix_spawn(&id, STEPWELL_TRAIN_AND_BE_KILLED, &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  if (plan.microseconds != 0) {
    ::usleep(static_cast<useconds_t>(plan.microseconds));
    ::kill(id, SIGKILL);
  }
  int how = 0;
  REQUIRE(waitpid(id, &how, 0) == id);
  if (WIFSIGNALED(how)) {
    REQUIRE(WTERMSIG(how) == SIGKILL);
    return true;
  }
  INFO(file_text(log));
  REQUIRE(WEXITSTATUS(how) == 0);
  return false;
}

std::int64_t number_in(const std::map<std::string, oracle_tensor>& tensors, const std::string& name) {
  std::int64_t value = 0;
  const auto& bytes = tensors.at(name).bytes;
  if (bytes.size() != sizeof value) { throw std::runtime_error(name + " is no scalar int64"); }
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// One complete checkpoint, seen by an independent reader.
struct seen_checkpoint {
  std::string name;
  std::int64_t step = 0;
  std::int64_t save_number = 0;
};

/// Returns all checkpoints of a directory, sorted by save number. Every index must belong to a complete checkpoint.
std::vector<seen_checkpoint> checkpoints_with_oracle(const std::string& directory) {
  std::vector<seen_checkpoint> seen;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".index") { continue; }
    const auto prefix = fs::path(entry.path()).replace_extension().string();
    const auto tensors = read_with_oracle(prefix);
    seen.push_back({fs::path(prefix).filename().string(), number_in(tensors, "global_step"), number_in(tensors, "stepwell/save_number")});
  }
  std::ranges::sort(seen, {}, &seen_checkpoint::save_number);
  return seen;
}

/// Returns the newest checkpoint of the state file, which is read as text.
std::string named_by_state_file(const std::string& directory) {
  const auto text = file_text(directory + "/checkpoint");
  std::smatch found;
  return std::regex_search(text, found, std::regex("(^|\n)model_checkpoint_path: \"([^\"]*)\"")) ? found[2].str() : "";
}

std::string said_by_tool(std::vector<std::string> arguments) {
  std::ostringstream out;
  std::ostringstream err;
  sw::tool::console to{.out = out, .err = err, .files = sw::io::posix_file_system(), .time = sw::system_clock()};
  const auto how = sw::tool::run(std::move(arguments), to);
  INFO(err.str());
  REQUIRE(how == sw::tool::exit_code::good);
  return out.str();
}

/// One directory, from the first start to the last kill.
class killed_training {
public:
  explicit killed_training(std::string directory) : directory_(std::move(directory)) {}

  /// Returns true if the process was killed, or false if it ended before.
  bool train_and_kill(std::mt19937_64& random) {
    const auto at_random = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
    const auto last_step = newest_step_ + at_random(1, 24);
    kill_plan how{.slow_events = at_random(0, 2) == 0 ? at_random(100, 5000) : 0};
    if (at_random(0, 2) == 0) {
      how.microseconds = at_random(1, 60000);
    } else if (at_random(0, 1) == 0) {
      how.operation = at_random(1, 400);
    } else {
      how.operation = at_random(1, 30);
      how.word = std::array{"/checkpoint", ".index", ".data-", "tfevents", "/best/"}.at(static_cast<std::size_t>(at_random(0, 4)));
    }
    return run(directory_, last_step, how);
  }

  void start_once_more(std::mt19937_64& random) {
    const auto more = std::uniform_int_distribution(-3, 3)(random);  // usually there is nothing to do
    REQUIRE_FALSE(run(directory_, std::max<std::int64_t>(newest_step_ + more, 1), {}));
  }

  void check() {
    const auto seen = checkpoints_with_oracle(directory_);
    REQUIRE_FALSE(seen.empty());
    const auto& newest = seen.back();
    CHECK(newest.name == "model.ckpt-" + std::to_string(newest.step));
    CHECK(newest.step >= newest_step_);
    newest_step_ = newest.step;
    CHECK(named_by_state_file(directory_) == newest.name);
    CHECK(sw::latest_checkpoint(directory_) == directory_ + "/" + newest.name);
    CHECK(json::parse(said_by_tool({"inspect", directory_, "--json"}))["prefix"] == directory_ + "/" + newest.name);
    CHECK(json::parse(said_by_tool({"stats", directory_, "--json"}))["newest_checkpoint"] == directory_ + "/" + newest.name);
    check_best();
    check_events(newest.step);
  }

private:
  /// A checkpoint is committed after the best one before it, so the best one is at least as good as each step up to the newest checkpoint.
  void check_best() const {
    const auto best = sw::best_checkpoint(directory_);
    REQUIRE(best);
    CHECK(best->value == killed_run::metric_of(best->step));
    CHECK(number_in(read_with_oracle(best->prefix), "global_step") == best->step);
    double least = killed_run::metric_of(1);
    for (std::int64_t step = 2; step <= newest_step_; ++step) { least = std::min(least, killed_run::metric_of(step)); }
    CHECK(best->value <= least);
  }
  void check_events(std::int64_t newest) const {
    const auto there = steps_with_oracle(directory_, killed_run::tag);
    std::string missing;
    for (std::int64_t step = 1; step <= newest; ++step) {
      if (!there.contains(step)) { missing += std::to_string(step) + " "; }
    }
    CHECK(missing == "");
  }

  std::string directory_;
  std::int64_t newest_step_ = 0;
};

}  // namespace

TEST_CASE("after each random kill and one more start, all views name the same checkpoint, and no event is missing", "[fault][kill]") {
  const auto wanted = number_from("STEPWELL_KILLS", 60);
  const auto seed = number_from("STEPWELL_KILL_SEED", std::random_device{}());
  std::cout << "STEPWELL_KILL_SEED=" << seed << " STEPWELL_KILLS=" << wanted << std::endl;
  constexpr std::uint64_t kills_in_one = 20;  // kills per directory, so that each has few event files
  std::mt19937_64 random(seed);
  std::uint64_t kills = 0;
  std::uint64_t directories = 0;
  while (kills < wanted) {
    const temporary_directory directory;
    killed_training training(directory / "run");
    ++directories;
    for (std::uint64_t count = 0; count < kills_in_one && kills < wanted;) {
      CAPTURE(seed, kills);
      if (!training.train_and_kill(random)) { continue; }
      ++kills;
      ++count;
      training.start_once_more(random);
      training.check();
    }
  }
  std::cout << kills << " kills in " << directories << " directories, seed " << seed << std::endl;
}
