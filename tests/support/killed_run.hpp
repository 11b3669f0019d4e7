// SPDX-License-Identifier: Apache-2.0
//
// The model, the data and the constants of the program train_and_be_killed, shared with the test that kills it.
#pragma once

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/update_fence.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepwell::test::killed_run {

inline constexpr std::int64_t save_steps = 3;
inline constexpr std::int64_t evaluation_steps = 4;
inline constexpr int max_to_keep = 2;
inline constexpr const char* tag = "value";
inline constexpr const char* tested = "tested";  ///< Name of the second directory of best checkpoints, by the evaluation.

/// Returns the metric of a step. It is different for each of the first 10007 steps.
[[nodiscard]] inline double metric_of(std::int64_t step) { return static_cast<double>(step * 5003 % 10007); }
/// Returns the summary of a step. A float cannot hold it.
[[nodiscard]] inline double summary_of(std::int64_t step) { return static_cast<double>(step) + 1e-9; }

/// A model whose weights are large enough to be copied while the next step computes, and whose step depends on every bit of its record.
struct model {
  struct result {
    std::int64_t step = 0;
  };
  std::vector<double> weights = std::vector<double>(1000, 1.0);
  std::int64_t count = 0;       // changes after the fence
  std::uint64_t seen = 0x9e37;  // changes before the fence

  result step(const std::vector<std::byte>& record, update_fence& fence) {
    for (const auto byte : record) { seen = std::rotl(seen, 5) * 0x9e3779b97f4a7c15ULL + std::to_integer<std::uint64_t>(byte); }
    const double gradient = static_cast<double>(seen >> 40) / static_cast<double>(1 << 24) - 0.5;
    fence.wait();
    double factor = 1;
    for (auto& weight : weights) {
      weight = 0.99 * weight + factor * gradient;
      factor *= -0.999;
    }
    return {++count};
  }
  [[nodiscard]] double score(double at) const { return weights[static_cast<std::size_t>(at)] * weights.front() + at; }
  variable_list variables() { return stepwell::variables({{"weights", weights}, {"count", count}, variable_ref("seen", seen).early()}); }
};

}  // namespace stepwell::test::killed_run
