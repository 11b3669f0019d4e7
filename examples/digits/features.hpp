// SPDX-License-Identifier: Apache-2.0
//
// Pictures of the weights of hidden units.
#pragma once

#include "network.hpp"
#include "xtensor.hpp"

#include <cstddef>

namespace digits {

/// Returns the weights of the first `count` hidden units (or of all, if there are fewer) as one picture a unit, with
/// shape [count, 28, 28, 1] and values from 0 to 1. Each picture is scaled so that weight zero is gray.
[[nodiscard]] xt::xtensor<float, 4> features(const network& model, std::size_t count);

}  // namespace digits
