// SPDX-License-Identifier: Apache-2.0
//
// The model: 784 pixels, one hidden layer, ten logits.
#pragma once

#include "adam.hpp"
#include "cross_entropy.hpp"
#include "dataset.hpp"
#include "dense.hpp"

#include <stepwell/base/variable.hpp>
#include <stepwell/checkpoint/update_fence.hpp>
#include <stepwell/group/group.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace digits {

/// A classifier that trains on one batch a step. The same seed and batches give the same bits at each step (on the same
/// machine with the same number of matrix threads).
struct network {
  dense hidden;
  dense output;
  adam optimizer{.learning_rate = 3e-4F};
  /// The processes among which each batch is divided. Null: the network trains alone.
  std::shared_ptr<stepwell::group> group;

  /// The score of a step's batch before the update.
  using result = score;

  /// @pre `hidden_size` is at least one.
  network(std::size_t hidden_size, std::uint64_t seed);

  /// Performs one training step. Reads the variables until it has waited at `fence`, and changes them afterwards, so that a due checkpoint is
  /// copied meanwhile. In a group, `examples` is a part of the batch, and the result is that of the whole batch.
  /// @pre The batch is not empty, but a part may be. @cost No allocation after the first batch of this size.
  result step(const batch& examples, stepwell::update_fence& fence);

  /// Returns the state for checkpoints: both layers, Adam's slots and powers, under TensorFlow's names.
  [[nodiscard]] stepwell::variable_list variables();

  /// Returns the score on `examples` without training.
  [[nodiscard]] result evaluate(const batch& examples) const;

private:
  score compute_gradients(const batch& examples);
  /// Replaces the gradients and `told`, which are means over `examples` examples of this process, by the means over the group.
  void average_over_group(std::size_t examples, score& told);
  void predict(const matrix& images, matrix& activations, matrix& logits) const;

  matrix activations_;  // of the hidden layer
  matrix activation_gradient_;
  matrix logits_;            // after scoring: the gradient of the logits
  std::vector<float> sums_;  // of the group: all gradients, the loss, the accuracy, and the number of examples
};

/// Returns the score of `model` on all of `examples`.
[[nodiscard]] score evaluate(const network& model, const dataset& examples);

}  // namespace digits
