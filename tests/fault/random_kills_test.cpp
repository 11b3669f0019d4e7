// SPDX-License-Identifier: Apache-2.0
//
// Kills a small training program at random moments, and lets each of its file operations fail in several ways. After each fault the program
// is started again. Then every view of the directory must name the same newest checkpoint, all events and metrics at or below its step must
// exist, and the best checkpoint must be the best state at or below its step. Each step, and the end, must have the bits of a training
// without faults.
//
// Other kills are made around the stops of a training: each kind of stop must lead to the end of an undisturbed training.
// STEPWELL_STOP_KILLS sets their number for each kind.
//
// STEPWELL_KILLED_PROGRAM names another build of the program. STEPWELL_KILLS sets the number of kills, STEPWELL_KILL_SEED selects them. STEPWELL_SWEEP_STRIDE=1 selects every file operation.
#include "support/bundle_oracle.hpp"
#include "support/catch.hpp"
#include "support/event_oracle.hpp"
#include "support/file_text.hpp"
#include "support/killed_run.hpp"
#include "support/temporary_directory.hpp"
#include "support/word_pointers.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/format/events/record.hpp>
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
#include <fstream>
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

/// The fault of a process; see train_and_be_killed.
struct fault_plan {
  std::string fault = "none";
  int operation = 0;
  std::string word = {};
  int microseconds = 0;  ///< The process is killed after this time. Zero: never.
  int slow_events = 0;   ///< Additional microseconds for each operation on an event file.
};

enum class ending { complete, failed, killed };

/// The output of one process.
struct output {
  ending how = ending::complete;
  std::map<std::int64_t, std::string> checksums;  ///< Checksum of the model after each step.
  std::int64_t saved = -1;                        ///< Newest step that was reported as durable.
  std::string end;                                ///< The line of the end. Empty if the process did not end the training.
  int operations = 0;                             ///< Number of file operations, if it was printed.
  std::string failure;
};

output output_in(const std::string& path) {
  output said;
  std::ifstream lines(path + ".out");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("end ")) {
      said.end = line;
    } else if (line.starts_with("operations ")) {
      said.operations = std::stoi(line.substr(11));
    } else if (line.starts_with("saved ")) {
      said.saved = std::max<std::int64_t>(said.saved, std::stoll(line.substr(6)));
    } else if (const auto space = line.find(' '); line.size() == space + 9) {  // a killed process may leave an incomplete line
      said.checksums[std::stoll(line)] = line.substr(space + 1);
    }
  }
  said.failure = file_text(path + ".log");
  return said;
}

/// Runs train_and_be_killed. An exit code that does not mean success or an error of the library fails the test.
output run(const std::string& directory, std::int64_t last_step, const fault_plan& plan) {
  const char* const named = std::getenv("STEPWELL_KILLED_PROGRAM");
  const char* const program = named != nullptr ? named : STEPWELL_TRAIN_AND_BE_KILLED;
  std::vector<std::string> words = {program,
                                    directory,
                                    std::to_string(last_step),
                                    plan.fault,
                                    std::to_string(plan.operation),
                                    plan.word,
                                    std::to_string(plan.slow_events)};
  const auto arguments = pointers_to(words);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (directory + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (directory + ".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t id = 0;
  REQUIRE(posix_spawn(&id, program, &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  if (plan.microseconds != 0) {
    ::usleep(static_cast<useconds_t>(plan.microseconds));
    ::kill(id, SIGKILL);
  }
  int how = 0;
  REQUIRE(waitpid(id, &how, 0) == id);
  auto said = output_in(directory);
  INFO(said.failure);
  if (WIFSIGNALED(how)) {
    REQUIRE(WTERMSIG(how) == SIGKILL);
    said.how = ending::killed;
    return said;
  }
  constexpr int failed = 3;
  REQUIRE((WEXITSTATUS(how) == 0 || WEXITSTATUS(how) == failed));
  said.how = WEXITSTATUS(how) == 0 ? ending::complete : ending::failed;
  return said;
}

/// Writes the records from which `directory` is trained.
void write_records(const std::string& directory) {
  std::mt19937_64 random(5);
  for (const char* ending : {".records-0", ".records-1"}) {
    std::vector<std::byte> bytes;
    for (int record = 0; record < 23; ++record) {
      std::vector<std::byte> data(random() % 200);
      for (auto& byte : data) { byte = static_cast<std::byte>(random()); }
      sw::format::append_record(bytes, data);
    }
    write_file_text(directory + ending, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

/// Returns the last step that a training reaches in this test.
constexpr std::int64_t far = 600;

/// Returns the output of a training without faults that ends at `last_step`.
const output& undisturbed(std::int64_t last_step) {
  static std::map<std::int64_t, output> known;
  if (const auto found = known.find(last_step); found != known.end()) { return found->second; }
  const temporary_directory directory;
  write_records(directory / "run");
  auto said = run(directory / "run", last_step, {});
  INFO(said.failure);
  REQUIRE(said.how == ending::complete);
  REQUIRE(said.checksums.size() == static_cast<std::size_t>(last_step));
  return known.emplace(last_step, std::move(said)).first->second;
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

/// Returns the steps at which a metric file has the value of the step. As the page on these files says, a start line makes the earlier lines
/// at and above its step obsolete.
std::set<std::int64_t> steps_in_csv(const std::string& path) {
  std::set<std::int64_t> steps;
  std::ifstream lines(path);
  const std::regex pattern("[0-9.]+,([0-9]+),\"?([^\",]*)\"?,(.*)");
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, pattern)) { continue; }  // incomplete
    const auto step = std::stoll(parts[1]);
    if (parts[2] == "stepwell/start") { steps.erase(steps.lower_bound(step), steps.end()); }
    if (parts[2] == killed_run::tag && std::stod(parts[3]) == killed_run::summary_of(step)) { steps.insert(step); }
  }
  return steps;
}
std::set<std::int64_t> steps_in_json_lines(const std::string& path) {
  std::set<std::int64_t> steps;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const auto parts = json::parse(line, nullptr, false);
    if (parts.is_discarded()) { continue; }
    const auto step = parts["step"].get<std::int64_t>();
    if (parts["tag"] == "stepwell/start") { steps.erase(steps.lower_bound(step), steps.end()); }
    if (parts["tag"] == killed_run::tag && parts["value"].get<double>() == killed_run::summary_of(step)) { steps.insert(step); }
  }
  return steps;
}

std::string missing_in(const std::set<std::int64_t>& steps, std::int64_t newest) {
  std::string missing;
  for (std::int64_t step = 1; step <= newest; ++step) {
    if (!steps.contains(step)) { missing += std::to_string(step) + " "; }
  }
  return missing;
}

/// One directory, from the first start to the end of its training.
class disturbed_training {
public:
  explicit disturbed_training(std::string directory) : directory_(std::move(directory)) { write_records(directory_); }

  /// Runs the training up to `last_step`, but at least up to the first evaluation, without which there is no best one. Each step must have
  /// the bits of the undisturbed training.
  output train(std::int64_t last_step, const fault_plan& plan) {
    auto said = run(directory_, std::max(last_step, killed_run::evaluation_steps), plan);
    for (const auto& [step, checksum] : said.checksums) { CHECK(checksum == undisturbed(far).checksums.at(step)); }
    if (!said.checksums.empty()) { furthest_step_ = std::max(furthest_step_, said.checksums.rbegin()->first + 1); }
    durable_step_ = std::max(durable_step_, said.saved);
    // The library prefers a checkpoint without some of its records to no checkpoint, and says so.
    has_record_failure_ |= said.failure.find("checkpoints are committed without the records") != std::string::npos;
    return said;
  }
  void start_once_more(std::int64_t last_step) {
    const auto said = train(last_step, {});
    INFO(said.failure);
    REQUIRE(said.how == ending::complete);
  }
  /// Trains to the end, which must be that of an undisturbed training. A killed process can have saved the best checkpoint of a step after
  /// the newest checkpoint; it stays, so the end is not before that step.
  void finish() {
    const auto last_step = (std::max(newest_step_, furthest_step_) / 50 + 1) * 50;  // few undisturbed trainings are needed
    const auto said = train(last_step, {});
    INFO(said.failure);
    REQUIRE(said.how == ending::complete);
    CHECK(said.end == undisturbed(last_step).end);
  }

  /// Leaves a part of the owner's name in all lock files, as a loss of power can.
  void tear_locks(std::mt19937_64& random) const {
    const std::string owner = "process 3131 on host vm since 2026-11-25T23:59:48Z";
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(directory_).parent_path())) {
      if (entry.path().extension() == ".lock") { write_file_text(entry.path(), owner.substr(0, random() % owner.size())); }
    }
  }

  [[nodiscard]] std::int64_t newest_step() const noexcept { return newest_step_; }

  void check() {
    const auto seen = checkpoints_with_oracle(directory_);
    REQUIRE_FALSE(seen.empty());
    const auto& newest = seen.back();
    CHECK(newest.name == "model.ckpt-" + std::to_string(newest.step));
    CHECK(newest.step >= newest_step_);
    CHECK(newest.step >= durable_step_);
    newest_step_ = newest.step;
    CHECK(named_by_state_file(directory_) == newest.name);
    CHECK(sw::latest_checkpoint(directory_) == directory_ + "/" + newest.name);
    CHECK(json::parse(said_by_tool({"inspect", directory_, "--json"}))["prefix"] == directory_ + "/" + newest.name);
    CHECK(json::parse(said_by_tool({"stats", directory_, "--json"}))["newest_checkpoint"] == directory_ + "/" + newest.name);
    check_best();
    if (has_record_failure_) { return; }
    CHECK(missing_in(steps_with_oracle(directory_, killed_run::tag), newest_step_) == "");
    CHECK(missing_in(steps_in_csv(directory_ + ".csv"), newest_step_) == "");
    CHECK(missing_in(steps_in_json_lines(directory_ + ".jsonl"), newest_step_) == "");
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

  std::string directory_;
  std::int64_t newest_step_ = 0;
  std::int64_t furthest_step_ = 0;   // no process has done a later step
  std::int64_t durable_step_ = -1;   // reported as durable by a process
  bool has_record_failure_ = false;  // an event or metric file could not be written
};

/// Returns a kill at a random moment: after a time, at an operation, or at an operation on some files.
fault_plan random_kill(std::mt19937_64& random) {
  const auto at_random = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  fault_plan plan{.slow_events = at_random(0, 2) == 0 ? at_random(100, 5000) : 0};
  if (at_random(0, 2) == 0) {
    plan.microseconds = at_random(1, 60000);
    return plan;
  }
  plan.fault = "kill";
  if (at_random(0, 1) == 0) {
    plan.operation = at_random(1, 600);
  } else {
    constexpr std::array words{"/checkpoint", ".index", ".data-", "tfevents", "/best/", "/tested/", ".csv", ".jsonl"};
    plan.operation = at_random(1, 30);
    plan.word = words.at(static_cast<std::size_t>(at_random(0, words.size() - 1)));
  }
  return plan;
}

}  // namespace

TEST_CASE("after each random kill and one more start, all views agree and no event is missing; the end has the bits of a run without kills",
          "[fault][kill]") {
  const auto wanted = number_from("STEPWELL_KILLS", 60);
  const auto seed = number_from("STEPWELL_KILL_SEED", std::random_device{}());
  std::cout << "STEPWELL_KILL_SEED=" << seed << " STEPWELL_KILLS=" << wanted << std::endl;
  constexpr std::uint64_t kills_in_one = 20;  // kills per directory, so that each has few event files
  std::mt19937_64 random(seed);
  std::uint64_t kills = 0;
  std::uint64_t directories = 0;
  while (kills < wanted) {
    const temporary_directory directory;
    disturbed_training training(directory / "run");
    ++directories;
    for (std::uint64_t count = 0; count < kills_in_one && kills < wanted;) {
      CAPTURE(seed, kills);
      const auto more = std::uniform_int_distribution(1, 24)(random);
      if (training.train(training.newest_step() + more, random_kill(random)).how != ending::killed) { continue; }
      ++kills;
      ++count;
      training.start_once_more(training.newest_step() + std::uniform_int_distribution(-3, 3)(random));  // usually there is nothing to do
      training.check();
    }
    CAPTURE(seed, kills);
    training.finish();
  }
  std::cout << kills << " kills in " << directories << " directories, seed " << seed << std::endl;
}

namespace {

/// Returns the number of file operations of a training up to `last_step`.
int operations_until(std::int64_t last_step) {
  int below = 1;
  for (int above = 2;; above *= 2) {  // the process is killed unless it has fewer operations
    const temporary_directory directory;
    write_records(directory / "run");
    if (run(directory / "run", last_step, {.fault = "kill", .operation = above}).how == ending::complete) { break; }
    below = above;
  }
  return 2 * below;
}

}  // namespace

TEST_CASE("a kill, an error, a stop of the machine or a loss of power at each file operation loses nothing durable", "[fault][sweep]") {
  const std::string fault = GENERATE("kill", "fail", "stop", "power", "names");
  constexpr std::int64_t last_step = 10;
  const auto stride = static_cast<int>(number_from("STEPWELL_SWEEP_STRIDE", 37));
  const auto seed = number_from("STEPWELL_KILL_SEED", std::random_device{}());
  const int last = operations_until(last_step);
  std::mt19937_64 random(seed);
  std::map<ending, int> endings;
  for (int operation = 1 + static_cast<int>(seed % static_cast<std::uint64_t>(stride)); operation <= last; operation += stride) {
    CAPTURE(fault, operation);
    const temporary_directory directory;
    disturbed_training training(directory / "run");
    const auto said = training.train(last_step, {.fault = fault, .operation = operation});
    INFO(said.failure);
    ++endings[said.how];
    if (fault == "power" || fault == "names") { training.tear_locks(random); }
    training.start_once_more(last_step + 2);
    training.check();
    training.finish();
    if (said.how == ending::complete && fault != "fail") { break; }  // there are fewer operations
  }
  std::cout << fault << ": " << endings[ending::killed] << " killed, " << endings[ending::failed] << " ended with an error, "
            << endings[ending::complete] << " completed" << std::endl;
}

namespace {

/// Sets STEPWELL_KILL_STOP for the processes of its scope.
class stop_setting {
public:
  explicit stop_setting(const std::string& value) { ::setenv("STEPWELL_KILL_STOP", value.c_str(), 1); }
  stop_setting(const stop_setting&) = delete;
  stop_setting& operator=(const stop_setting&) = delete;
  ~stop_setting() { ::unsetenv("STEPWELL_KILL_STOP"); }
};

/// Returns true if another start has nothing to do: a process has ended the training, not for a reason of its surroundings.
bool is_final(const output& said) {
  return said.how == ending::complete && said.end.find(" stop signal") == std::string::npos &&
         said.end.find(" stop deadline") == std::string::npos;
}

}  // namespace

TEST_CASE("a training that is killed around a stop of any kind and started until nothing is left to do has the end of an undisturbed one",
          "[fault][kill][stop]") {
  const std::string kind = GENERATE("hook", "body", "early", "signal", "limit");
  const auto wanted = number_from("STEPWELL_STOP_KILLS", 6);
  const auto seed = number_from("STEPWELL_KILL_SEED", std::random_device{}());
  constexpr std::int64_t last_step = 21;
  const bool is_of_surroundings = kind == "signal" || kind == "limit";
  std::mt19937_64 random(seed);
  const auto at_random = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  struct truth {
    output whole;
    int operations;  // of the first start
  };
  std::map<std::int64_t, truth> truths;
  std::uint64_t kills = 0;
  std::uint64_t directories = 0;
  for (; kills < wanted; ++directories) {
    const auto varied = static_cast<std::int64_t>(directories % 3);
    const auto number = kind == "early" ? 1 : varied + (is_of_surroundings ? 3 : 9);
    CAPTURE(kind, number, seed, kills);
    const stop_setting setting(kind + " " + std::to_string(number));
    if (!truths.contains(number)) {
      const temporary_directory directory;
      write_records(directory / "run");
      auto first = run(directory / "run", last_step, {});
      INFO(first.failure);
      REQUIRE(first.how == ending::complete);
      REQUIRE(first.checksums.size() < static_cast<std::size_t>(last_step));  // it was stopped
      const auto operations = first.operations;
      if (is_of_surroundings) {
        ::unsetenv("STEPWELL_KILL_STOP");
        first = undisturbed(last_step);
        ::setenv("STEPWELL_KILL_STOP", (kind + " " + std::to_string(number)).c_str(), 1);
      }
      truths.emplace(number, truth{std::move(first), operations});
    }
    const auto& [whole, operations] = truths.at(number);
    const temporary_directory directory;
    write_records(directory / "run");
    output said;
    int starts = 0;
    do {
      REQUIRE(++starts < 50);
      // around the stop: the last operations of the first start, and those of the start after it
      const int low = starts > 1 ? 1 : at_random(0, 1) == 0 ? operations / 2 : operations - 60;
      const int high = starts > 1 ? 150 : operations + 10;
      const bool kills_now = starts <= 3 && kills < wanted;
      said = run(directory / "run", last_step, {.fault = kills_now ? "kill" : "none", .operation = at_random(std::max(low, 1), high)});
      INFO(said.failure);
      REQUIRE(said.how != ending::failed);
      kills += said.how == ending::killed;
      for (const auto& [step, checksum] : said.checksums) {
        CAPTURE(step);
        CHECK((whole.checksums.contains(step) && whole.checksums.at(step) == checksum));
      }
    } while (!is_final(said));
    CHECK(said.end == whole.end);
    const auto again = run(directory / "run", last_step, {});
    CHECK(again.checksums.empty());
    CHECK(again.end == whole.end);
  }
  std::cout << kind << ": " << kills << " kills around stops in " << directories << " directories, seed " << seed << std::endl;
}
