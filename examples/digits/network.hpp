// SPDX-License-Identifier: Apache-2.0
//
// The model: 784 pixels, a hidden layer, ten logits.
#pragma once

#include "adam.hpp"
#include "cross_entropy.hpp"
#include "dataset.hpp"
#include "dense.hpp"

#include <stepwell/base/variable.hpp>

#include <cstddef>
#include <cstdint>

namespace digits {

/// A classifier that learns one batch a step. The same seed and batches give the same bits, step by step
/// (same machine, same number of matrix threads).
struct network {
  dense hidden;
  dense output;
  adam optimizer{.learning_rate = 3e-4F};

  /// What a step tells of the batch it learnt from, as it was before learning.
  using result = score;

  /// @pre `hidden_size` is at least one.
  network(std::size_t hidden_size, std::uint64_t seed);

  /// One training step. @pre The batch is not empty. @cost No allocation once a batch of this size was seen.
  result step(const batch& examples);

  /// What a checkpoint holds: both layers, Adam's slots and powers, under TensorFlow's names.
  [[nodiscard]] stepwell::variable_list variables();

  /// How well it does on `examples`; nothing is learnt.
  [[nodiscard]] result evaluate(const batch& examples) const;

private:
  void predict(const matrix& images, matrix& activations, matrix& logits) const;

  matrix activations_;  // of the hidden layer
  matrix activation_gradient_;
  matrix logits_;  // after scoring: their gradient
};

/// How well `model` does on all of `examples`.
[[nodiscard]] score evaluate(const network& model, const dataset& examples);

}  // namespace digits
