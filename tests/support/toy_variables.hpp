// SPDX-License-Identifier: Apache-2.0
//
// The variables of a small model. Their values follow from the step, so that a test knows the values to expect after a
// restore.
#pragma once

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/checkpoint_reader.hpp>
#include <stepwell/checkpoint/restore.hpp>
#include <stepwell/checkpoint/snapshot.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace stepwell::test {

struct toy_variables {
  std::int64_t global_step = 0;
  std::vector<float> weights = std::vector<float>(100);
  std::array<double, 3> bias{};
  bool trained = false;

  [[nodiscard]] variable_list list() {
    return variables({{"global_step", global_step}, {"layer/weights", weights}, {"layer/bias", bias}, {"trained", trained}});
  }
  void set_to(std::int64_t step) {
    global_step = step;
    for (std::size_t i = 0; i < weights.size(); ++i) { weights[i] = static_cast<float>(step) + static_cast<float>(i) / 128; }
    bias = {static_cast<double>(step), -1.5, 1e300};
    trained = step % 2 == 1;
  }
  [[nodiscard]] bool operator==(const toy_variables&) const = default;
};

[[nodiscard]] inline toy_variables toy_at(std::int64_t step) {
  toy_variables made;
  made.set_to(step);
  return made;
}

/// Returns a snapshot in its own buffer.
[[nodiscard]] inline snapshot toy_snapshot(std::int64_t step) {
  auto toy = toy_at(step);
  const auto list = toy.list();
  snapshot_pool pool(snapshot_size(list), 1);
  return snapshot::capture(pool.acquire(), list, step);
}

/// Returns the content of a checkpoint.
[[nodiscard]] inline toy_variables toy_in(const checkpoint_reader& reader) {
  toy_variables toy;
  restore(toy.list(), reader);
  return toy;
}

}  // namespace stepwell::test
