// SPDX-License-Identifier: Apache-2.0
//
// A program outside of the tree that uses only the installed library. It trains, is stopped by its own hook, starts
// again and continues to the end. The result is compared with a training without a stop.
#include "shaken.hpp"

#include <stepwell/testing/fault_file_system.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

/// A user-defined hook. It counts its runs and stops the session after `limit` runs.
struct stop_after_runs {
  std::shared_ptr<std::int64_t> seen;
  std::int64_t limit;

  auto before_run(auto& /*context*/) { return sw::fetch(&shaken::result::loss); }
  void after_run(auto& context, const auto& values) {
    if (values.value() >= 0 && ++*seen == limit) { context.request_stop({sw::stop_cause::requested, "seen enough"}); }
  }
};

/// Trains in `directory` up to step 100, at most `runs` steps. Returns the number of steps.
std::int64_t train(shaken& model, const std::string& directory, std::int64_t runs) {
  auto seen = std::make_shared<std::int64_t>(0);
  auto session = sw::monitored_training_session(
      model, {.checkpoint_dir = directory, .saves = {.save_steps = 25}, .resume_after_stop = true}, stop_after_runs{seen, runs},
      sw::stop_at_step_hook{{.last_step = 100}}, sw::nan_tensor_hook{&shaken::result::loss},
      sw::summary_saver_hook{{.output_dir = directory, .save_steps = 10}, sw::summary::scalar("loss", &shaken::result::loss)});
  for ([[maybe_unused]] const auto& step : session.steps(std::vector<double>(1000, 1.0))) {}
  session.close();
  std::printf("%s: %lld steps, now at %lld: %s\n", directory.c_str(), static_cast<long long>(*seen),
              static_cast<long long>(session.global_step()), session.stop_reason().text.c_str());
  return *seen;
}

bool refuses_what_is_no_checkpoint() {
  try {
    sw::checkpoint_reader("whole/no-such-checkpoint");
  } catch (const sw::not_found_error& failure) {
    std::printf("as it should be: %s\n", failure.what());
    return true;
  }
  return false;
}

/// Reads a checkpoint from a disk that fails, with the file system for tests of users.
bool notices_a_bad_disk() {
  const auto files = std::make_shared<sw::testing::fault_file_system>();
  files->inject({.kind = sw::testing::file_operation::read, .path_contains = ".index"});
  try {
    sw::checkpoint_reader("whole/model.ckpt-100", files);
  } catch (const sw::error&) { return files->operations(sw::testing::file_operation::read) == 1; }
  return false;
}

int main() {
  for (const char* directory : {"whole", "parts"}) { std::filesystem::remove_all(directory); }
  shaken whole, first_part, second_part, nothing_left;
  const bool steps_add_up = train(whole, "whole", 1000) == 100 && train(first_part, "parts", 37) == 37 &&
                            train(second_part, "parts", 1000) == 63 && train(nothing_left, "parts", 1000) == 0;
  const bool bits_agree = second_part.weights == whole.weights && nothing_left.weights == whole.weights;
  const bool newest_is_there = sw::latest_checkpoint("parts") == "parts/model.ckpt-100";
  const bool it_learns = loss_after(100) < loss_after(1);
  return steps_add_up && bits_agree && newest_is_there && it_learns && refuses_what_is_no_checkpoint() && notices_a_bad_disk() ? 0 : 1;
}
