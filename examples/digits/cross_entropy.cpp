// SPDX-License-Identifier: Apache-2.0
#include "cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace digits {
namespace {

/// Returns the probability, or zero if it is so small that it would only slow down every product with it.
float noticeable(float probability) { return probability < 1e-30F ? 0.0F : probability; }

/// Turns logits into probabilities. Returns the logarithm of the normalising sum.
float softmax(std::span<float> row) {
  const float largest = *std::ranges::max_element(row);
  float sum = 0;
  for (float& value : row) { sum += value = std::exp(value - largest); }
  for (float& value : row) { value = noticeable(value / sum); }
  return largest + std::log(sum);
}

}  // namespace

score cross_entropy(matrix& logits, const xt::xtensor<std::int32_t, 1>& labels) {
  const std::size_t rows = logits.shape(0);
  const std::size_t classes = logits.shape(1);
  double loss = 0;
  std::size_t right = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = std::span(logits.data(), logits.size()).subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels(i));
    const float wanted = row[label];
    right += static_cast<std::size_t>(std::ranges::max_element(row) - row.begin()) == label ? 1 : 0;
    loss += static_cast<double>(softmax(row) - wanted);
    row[label] -= 1.0F;
    for (float& value : row) { value /= static_cast<float>(rows); }
  }
  const auto count = static_cast<double>(rows);
  return {static_cast<float>(loss / count), static_cast<float>(static_cast<double>(right) / count)};
}

}  // namespace digits
