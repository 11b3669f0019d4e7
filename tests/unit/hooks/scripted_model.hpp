// SPDX-License-Identifier: Apache-2.0
//
// A model for tests of hooks that watch a number.
#pragma once

#include <stepwell/base/variable.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stepwell::test {

/// A model whose steps return a sequence of given numbers.
struct scripted_model {
  struct result {
    double score;
    std::optional<double> measured;  // in every second step
  };
  std::vector<double> script;
  std::int64_t next = 0;

  result step() {
    const auto value = script.at(static_cast<std::size_t>(next++));
    return {value, next % 2 == 0 ? std::optional(value) : std::nullopt};
  }
  stepwell::variable_list variables() { return stepwell::variables({{"next", next}}); }
};

}  // namespace stepwell::test
