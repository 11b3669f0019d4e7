// SPDX-License-Identifier: Apache-2.0
//
// train_and_be_killed DIRECTORY LAST_STEP FAULT OPERATION WORD DELAY: trains up to a step with most features of a session: periodic
// checkpoints copied behind a fence, records made in advance, metric files, an evaluation beside the training, two best checkpoints, moving
// averages and early stopping. The records are in the files DIRECTORY.records-0 and -1.
//
// FAULT happens at operation number OPERATION of the file system on a path that contains WORD: `kill` (the process kills itself), `fail` (the
// operation fails), `stop` (the machine stops), `power` (the machine loses its power: bytes that are not synced are lost) or `names` (like
// `power`, and names that are not synced are lost, too). `none`: no fault. Each operation on an event file takes DELAY microseconds more.
//
// If the environment variable STEPWELL_KILL_FENCE is set, the directory has a fence instead of a lock.
//
// The environment variable STEPWELL_KILL_STOP="KIND NUMBER" adds another end of the loop: `hook` or `body` requests a stop after step NUMBER
// only, `early` stops early with the patience NUMBER, `signal` sends the process a signal after each NUMBER-th step, and `limit` ends the
// process there as a time limit does. The process then also prints "operations COUNT", the number of its file operations.
//
// Prints "STEP CHECKSUM" for each step, "saved STEP" for each durable checkpoint, and at the end one line with everything that the training
// has computed. The exit code is 3 if the training ends with an error, which is printed on standard error.
#include "support/checkpoint_files.hpp"
#include "support/killed_run.hpp"
#include "support/signalling_hook.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/snapshot.hpp>
#include <stepwell/data/prefetch.hpp>
#include <stepwell/data/record_files.hpp>
#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/early_stopping_hook.hpp>
#include <stepwell/hooks/ema_hook.hpp>
#include <stepwell/hooks/evaluate_every.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/io/fenced_directory.hpp>
#include <stepwell/summary/metric_writer.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace sw = stepwell;
using namespace sw::test::killed_run;
using sw::test::fault_file_system;

namespace {

/// Prints a line at once, so that it is there if the process is killed.
void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

/// Prints each durable checkpoint.
struct printing_listener final : sw::checkpoint_saver_listener {
  bool after_save(const sw::saved_checkpoint& saved) override {
    say(fmt::format("saved {}", saved.step));
    return false;
  }
};

/// The fault of a process, and its moment.
struct plan {
  std::string fault;
  std::uint64_t operation = 0;
  std::string word;
  useconds_t delay = 0;
};

/// The end of the loop that STEPWELL_KILL_STOP adds.
struct stop_plan {
  std::string kind;
  std::int64_t number = 0;

  [[nodiscard]] std::int64_t number_of(std::string_view wanted, std::int64_t otherwise) const {
    return kind == wanted ? number : otherwise;
  }
};
stop_plan stop_from_environment() {
  const char* const said = std::getenv("STEPWELL_KILL_STOP");
  stop_plan made;
  if (said != nullptr) { std::istringstream(said) >> made.kind >> made.number; }
  return made;
}

/// Requests a stop after step `at` only.
struct criterion_hook {
  std::int64_t at;
  void after_run(auto& context, const auto&) const {
    if (context.global_step() == at) { context.request_stop("the criterion of a hook"); }
  }
};
/// Sends a signal after each `every`-th step, unless `every` is zero.
struct repeated_signal {
  std::int64_t every;
  sw::test::signalling_hook once{.at = 0};
  void after_create_session(auto& session, auto& threads) { once.after_create_session(session, threads); }
  void after_run(auto& context, const auto& values) {
    if (every == 0 || context.global_step() % every != 0) { return; }
    once.at = context.global_step();
    once.after_run(context, values);
  }
};
/// Ends the process after each `every`-th step, as a time limit does, unless `every` is zero.
struct repeated_limit {
  std::int64_t every;
  void after_run(auto& context, const auto&) const {
    if (every == 0 || context.global_step() % every != 0) { return; }
    context.signals()->request_stop({sw::stop_cause::deadline, "the time limit is reached"});  // the call of `time_limit_hook`
  }
};

std::shared_ptr<fault_file_system> files_with(const plan& how, const std::shared_ptr<std::atomic<std::uint64_t>>& all) {
  const auto files = sw::test::fast_faulty_files();
  files->before_each([=, count = std::make_shared<std::atomic<std::uint64_t>>(0)](const sw::test::event& next) {
    ++*all;
    if (how.delay != 0 && next.path.find("tfevents") != std::string::npos) { ::usleep(how.delay); }
    if (how.fault == "kill" && next.path.find(how.word) != std::string::npos && ++*count == how.operation) { ::kill(::getpid(), SIGKILL); }
  });
  if (how.fault == "fail") { files->inject({.path_contains = how.word, .nth = how.operation}); }
  if (how.fault == "stop") { files->crash_at(how.operation); }
  if (how.fault == "power") { files->lose_power_at(how.operation); }
  if (how.fault == "names") { files->lose_power_and_names_at(how.operation); }
  return files;
}

std::string text_of(double value) { return fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value)); }

std::string best_in(const std::string& directory, const char* name) {
  const auto best = sw::best_checkpoint(directory, name);
  return best ? fmt::format("{} {}", best->step, text_of(best->value)) : "none";
}

void train(const std::string& directory, std::int64_t last_step, const plan& how) {
  const auto operations = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<sw::io::file_system> files = files_with(how, operations);
  const auto stop = stop_from_environment();
  if (std::getenv("STEPWELL_KILL_FENCE") != nullptr) { files = std::make_shared<sw::io::fenced_directory>(directory, files); }
  const sw::summary::metric_writer_options metric_options = {.file_system = files};
  const std::vector<double> test_set = {1, 20, 300, 999};
  auto records =
      sw::data::record_files({.paths = {directory + ".records-0", directory + ".records-1"}, .epochs = std::nullopt, .file_system = files});
  auto batches = sw::data::prefetch(records, {.depth = 3});
  model trained;
  model other;
  const auto evaluated = sw::evaluate_every({.every = evaluation_steps, .log = false}, sw::beside(other), test_set, &model::score,
                                            sw::measure("score", [](double value) { return value; }));
  sw::early_stopping_hook stopping{{.patience = stop.number_of("early", 1'000'000)}, evaluated.value("score")};
  sw::ema_hook average({.decay = 0.9}, trained);
  auto session = sw::monitored_training_session(
      trained,
      {.checkpoint_dir = directory,
       .metrics = {std::make_shared<sw::summary::csv_writer>(directory + ".csv", metric_options),
                   std::make_shared<sw::summary::jsonl_writer>(directory + ".jsonl", metric_options)},
       .saves = {.save_steps = save_steps,
                 .saver = {.max_to_keep = max_to_keep, .file_system = files},
                 .listeners = {std::make_shared<printing_listener>()}},
       .summaries = {.save_steps = 1},
       .step_counter = {.every_n_steps = sw::none},
       .stop_on = {SIGURG}},
      sw::summaries(sw::summary::scalar(tag, [](const model::result& run) { return summary_of(run.step); })), std::ref(average), evaluated,
      std::ref(stopping), sw::stop_at_step_hook{{.last_step = last_step}}, repeated_limit{stop.number_of("limit", 0)},
      criterion_hook{stop.number_of("hook", -1)}, repeated_signal{stop.number_of("signal", 0)},
      sw::best_checkpoint_hook{{.saver = {.file_system = files}}, [](const model::result& run) { return metric_of(run.step); }},
      sw::best_checkpoint_hook{{.name = tested, .saver = {.file_system = files}}, evaluated.value("score")});
  for (const auto& step : session.steps(batches)) {
    say(fmt::format("{} {:08x}", step.global_step, sw::checksum(trained.variables())));
    if (step.global_step == stop.number_of("body", -1)) { session.request_stop("the criterion of the body"); }
  }
  session.close();
  model averaged = trained;
  average.copy_to(averaged);
  say(fmt::format("end {} averages {:08x} stopping {} {} {} best {} tested {} stop {}: {}", session.global_step(),
                  sw::checksum(averaged.variables()), stopping.best_step().value_or(-1), text_of(stopping.best().value_or(0)),
                  stopping.waited(), best_in(directory, "best"), best_in(directory, tested), to_string(session.stop_reason().cause),
                  session.stop_reason().text));
  if (!stop.kind.empty()) { say(fmt::format("operations {}", operations->load())); }
}

}  // namespace

int main(int count, char** words) {
  if (count != 7) { return 2; }
  try {
    train(words[1], std::stoll(words[2]), {words[3], std::stoull(words[4]), words[5], static_cast<useconds_t>(std::stoul(words[6]))});
    return 0;
  } catch (const sw::error& failure) {
    std::fprintf(stderr, "train_and_be_killed: %s\n", failure.what());
    return 3;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "train_and_be_killed: not an error of the library: %s\n", failure.what());
    return 1;
  }
}
