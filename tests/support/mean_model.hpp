// SPDX-License-Identifier: Apache-2.0
//
// A small model for trainings of a group, whose bits show each change of the order of a sum.
#pragma once

#include <stepwell/base/variable.hpp>
#include <stepwell/group/part_of.hpp>

#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace stepwell::test {

using examples = std::vector<double>;

inline examples mean_examples(int count) {
  examples all;
  for (int i = 0; i < count; ++i) { all.push_back(std::sin(i) / 3); }
  return all;
}

/// Moves a weight towards the examples; its rounding depends on the order of the sum.
struct mean_model {
  struct result {
    double weight;
  };

  explicit mean_model(std::shared_ptr<stepwell::group> with) : group(std::move(with)), sums(group, 1) {}

  result step(const std::vector<batch_part<examples>>& parts) {
    if (before_sum) { before_sum(); }
    sums.clear();
    for (const auto& [index, batch] : parts) {
      for (const auto value : batch) { sums.part(index)[0] += value - 0.37 * weight; }
    }
    weight += 0.1 * sums.sum()[0];
    return {weight};
  }
  [[nodiscard]] variable_list variables() { return stepwell::variables({{"weight", weight}}); }

  std::shared_ptr<stepwell::group> group;
  part_sums<double> sums;
  double weight = 0.5;
  std::function<void()> before_sum;
};

}  // namespace stepwell::test
