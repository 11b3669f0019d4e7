// SPDX-License-Identifier: Apache-2.0
//
// A small training session on a disk that fails on demand, with a clock that stands still and one background thread, so
// that the order of events is known to the test.
#pragma once

#include "support/checkpoint_files.hpp"
#include "support/file_text.hpp"
#include "support/toy_model.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/io/pool.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace stepwell::test {

/// An endless, seekable source of increasing numbers.
struct counting_source {
  std::int64_t next = 1;

  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
  std::uint64_t position() const { return static_cast<std::uint64_t>(next - 1); }
  void seek(std::uint64_t position) { next = static_cast<std::int64_t>(position) + 1; }
};

using adding_options = training_options;

struct session_rig {
  temporary_directory directory;
  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  std::shared_ptr<fault_file_system> files = fast_faulty_files();
  std::shared_ptr<io::pool> pool = std::make_shared<io::pool>(1);
  adding_model model;

  /// Returns options that save every second step, keep all checkpoints and write no summaries.
  [[nodiscard]] adding_options options() const {
    return {.checkpoint_dir = directory.path(),
            .saves = {.save_steps = 2, .saver = {.max_to_keep = none, .file_system = files, .pool = pool}},
            .summaries = {.save_steps = none},
            .step_counter = {.every_n_steps = none},
            .clock = clock};
  }
  [[nodiscard]] auto start() { return monitored_training_session(model, options()); }

  /// Blocks until the background thread has finished everything posted earlier.
  void settle() const {
    std::promise<void> reached;
    pool->post([&] { reached.set_value(); });
    reached.get_future().wait();
  }
  [[nodiscard]] std::string steps() const { return steps_in(directory.path()); }
};

/// Blocks until no save is in progress. Does not consume the saver's failure.
template<class Session>
void wait_for_saves(Session& session) {
  const auto& saver = session.template hook<checkpoint_saver_hook>().saver();
  while (saver.busy()) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }
}

/// Runs single steps until `last_step`. Each step's batch is its own number.
template<class Session>
void run_until(Session& session, std::int64_t last_step) {
  while (session.global_step() < last_step) { session.run(session.global_step() + 1); }
}

/// The content of the newest complete checkpoint; step -1 if there is none.
struct restored {
  std::int64_t step = -1;
  adding_model model;
};
inline restored newest_in(const std::string& directory) {
  restored found;
  const auto reader = latest_whole_checkpoint(directory);
  if (!reader) { return found; }
  found.step = *reader->step();
  restore(found.model.variables(), *reader);
  return found;
}

/// Returns the model after `steps` steps.
inline adding_model model_after(std::int64_t steps) {
  adding_model made;
  for (std::int64_t batch = 1; batch <= steps; ++batch) { made.step(batch); }
  return made;
}
inline bool same(const adding_model& a, const adding_model& b) { return a.sum == b.sum && a.weights == b.weights; }

/// Trains with a new session on a file system without faults until `last_step`. Returns the step where the session
/// started, or -1 without a checkpoint.
inline std::int64_t finish_on_sound_files(adding_model& model, const std::string& directory, std::int64_t last_step, int shards = 1) {
  const auto sound = std::make_shared<stepwell::detail::unsynced_file_system>(io::posix_file_system());
  auto session = monitored_training_session(
      model,
      {.checkpoint_dir = directory, .saves = {.save_steps = 2, .saver = {.max_to_keep = none, .shards = shards, .file_system = sound}}},
      stop_at_step_hook{{.last_step = last_step}});
  const auto start = session.restored_from() ? session.global_step() : -1;
  counting_source source;
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
  return start;
}

/// Returns all files below the directory with their contents.
inline std::map<std::string, std::string> contents_of(const std::string& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    all[entry.path().string()] = entry.is_regular_file() ? file_text(entry.path().string()) : "";
  }
  return all;
}

}  // namespace stepwell::test
