// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy: how wrong the logits of a batch are, and which way is better.
#pragma once

#include "matrix.hpp"

#include <cstdint>

namespace digits {

/// Means over a batch.
struct score {
  float loss = 0;
  float accuracy = 0;  // how many have their largest logit at the label
};

/// Scores `logits` and turns them into the gradient of the mean loss, in place.
/// @pre One label below the number of columns for each row; there is at least one row.
score cross_entropy(matrix& logits, const xt::xtensor<std::int32_t, 1>& labels);

}  // namespace digits
