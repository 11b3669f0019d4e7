// SPDX-License-Identifier: Apache-2.0
//
// train_and_be_killed DIRECTORY LAST_STEP OPERATION WORD DELAY: trains up to a step, saves every third step, writes a
// summary of each step, and saves the best state. If OPERATION is not zero, the process kills itself
// before that operation of its file system on a path that contains WORD. Each operation on an event file takes DELAY
// microseconds more.
#include "support/checkpoint_files.hpp"
#include "support/killed_run.hpp"
#include "support/toy_model.hpp"

#include <stepwell/hooks/best_checkpoint_hook.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace sw = stepwell;
using namespace sw::test::killed_run;

namespace {

void train(const std::string& directory, std::int64_t last_step, std::uint64_t operation, const std::string& word, useconds_t delay) {
  const auto files = sw::test::fast_faulty_files();
  std::atomic<std::uint64_t> count = 0;
  files->before_each([&](const sw::test::event& next) {
    if (next.path.find(word) != std::string::npos && ++count == operation) { ::kill(::getpid(), SIGKILL); }
    if (delay != 0 && next.path.find("tfevents") != std::string::npos) { ::usleep(delay); }
  });
  const auto write_summary = [](sw::summary::writer& out, const int& count, const auto& /*model*/, std::int64_t step) {
    out.add_scalar(tag, static_cast<float>(count), step);
  };
  sw::test::counting_model model;
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory,
       .save_checkpoint_steps = save_steps,
       .save_summaries_steps = 1,
       .log_step_count_steps = sw::none,
       .summary = write_summary,
       .saver = {.max_to_keep = max_to_keep, .file_system = files}},
      sw::stop_at_step_hook{{.last_step = last_step}},
      sw::best_checkpoint_hook{{.saver = {.file_system = files}}, [](const int& count) { return metric_of(count); }});
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) { return 2; }
  try {
    train(words[1], std::stoll(words[2]), std::stoull(words[3]), words[4], static_cast<useconds_t>(std::stoul(words[5])));
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "train_and_be_killed: %s\n", failure.what());
    return 1;
  }
}
