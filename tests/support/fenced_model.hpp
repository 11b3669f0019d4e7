// SPDX-License-Identifier: Apache-2.0
//
// Parts of tests of models with an `update_fence`: variables that are copied late, and a pool that copies nothing for a while.
#pragma once

#include "support/gate.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/io/pool.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::test {

inline constexpr std::size_t many = 64 * 1024;  // large enough to be copied late

/// Weights, which change after the fence, and means, which change before it.
struct fenced_values {
  std::vector<float> weights = std::vector<float>(many, 1.0F);
  std::vector<float> means = std::vector<float>(many, 0.0F);
  float rate = 1;

  bool operator==(const fenced_values&) const = default;
  variable_list variables() { return stepwell::variables({{"weights", weights}, variable_ref("means", means).early(), {"rate", rate}}); }
  void update_means(std::int64_t batch) {
    for (auto& mean : means) { mean += static_cast<float>(batch); }
  }
  void update_weights(std::int64_t batch) {
    for (auto& weight : weights) { weight += rate * static_cast<float>(batch); }
  }
};

/// A thread that is kept busy from `stop` to `go`, so that it copies nothing.
struct held_pool {
  std::shared_ptr<io::pool> pool = std::make_shared<io::pool>(1);
  gate open;

  ~held_pool() {
    go();
    pool->join();
  }
  void stop() {
    open.close();
    pool->post([this] { open.pass(); });
    open.wait_for_somebody();
  }
  void go() { open.open(); }
};

inline training_options options_of(const temporary_directory& directory, const std::shared_ptr<io::pool>& pool) {
  return {.checkpoint_dir = directory.path(),
          .saves = {.save_steps = 2, .saver = {.max_to_keep = none, .pool = pool}},
          .summaries = {.save_steps = none},
          .step_counter = {.every_n_steps = none},
          .check_update_fence = false};  // a checked snapshot is copied before the step
}

inline fenced_values saved_at(const temporary_directory& directory, std::int64_t step) {
  fenced_values found;
  restore(found.variables(), checkpoint_reader(directory.path() + "/model.ckpt-" + std::to_string(step)));
  return found;
}

/// Returns the values after so many steps.
inline fenced_values values_after(std::int64_t steps) {
  fenced_values found;
  for (std::int64_t batch = 1; batch <= steps; ++batch) {
    found.update_means(batch);
    found.update_weights(batch);
  }
  return found;
}

}  // namespace stepwell::test
