// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy: the loss of a batch of logits, and its gradient.
#pragma once

#include "matrix.hpp"

#include <cstdint>

namespace digits {

/// The mean loss and accuracy of a batch.
struct score {
  float loss = 0;
  float accuracy = 0;  // the fraction of rows whose largest logit is at the label
};

/// Computes the score of `logits` and replaces them by the gradient of the mean loss.
/// @pre One label below the number of columns for each row; there is at least one row.
score cross_entropy(matrix& logits, const xt::xtensor<std::int32_t, 1>& labels);

}  // namespace digits
