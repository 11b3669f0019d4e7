// SPDX-License-Identifier: Apache-2.0
//
// Sources, a hook with state and a short training run, for tests of complete training sessions.
#pragma once

#include "support/temporary_directory.hpp"
#include "support/toy_model.hpp"

#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::test {

/// An endless, seekable source of increasing numbers that may have a name.
struct named_source {
  std::int64_t next = 1;
  std::string called = "";

  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
  std::uint64_t position() const { return static_cast<std::uint64_t>(next - 1); }
  void seek(std::uint64_t position) { next = static_cast<std::int64_t>(position) + 1; }
  const std::string& name() const { return called; }
};

struct blind_source {
  std::int64_t next = 1;
  const std::int64_t* peek() { return &next; }
  void advance() { ++next; }
};

/// A hook that counts its runs, also across restarts.
struct counting_hook {
  static constexpr auto state_name = "counter";
  std::int64_t runs = 0;
  void after_run(auto&, const auto&) { ++runs; }
  variable_list variables() { return stepwell::variables({{"runs", runs}}); }
};

inline std::vector<std::int64_t> steps_on_disk(const temporary_directory& directory) {
  std::vector<std::int64_t> steps;
  for (const auto& prefix : list_checkpoints(directory.path())) { steps.push_back(*step_of_checkpoint(prefix)); }
  return steps;
}

using adding_options = training_options;

inline void train_until(adding_model& model, const std::string& directory, std::int64_t last_step) {
  auto session = monitored_training_session(model, {.checkpoint_dir = directory, .saves = {.save_steps = 2}},
                                            stop_at_step_hook{{.last_step = last_step}});
  named_source source;
  for ([[maybe_unused]] const auto& step : session.steps(source)) {}
  session.close();
}

}  // namespace stepwell::test
