// SPDX-License-Identifier: Apache-2.0
//
// What hidden units look for, as pictures.
#pragma once

#include "network.hpp"
#include "xtensor.hpp"

#include <cstddef>

namespace digits {

/// The weights of the first `count` hidden units (fewer if there are not so many), one picture a unit, each scaled so
/// that zero is gray: [count, 28, 28, 1], from 0 to 1.
[[nodiscard]] xt::xtensor<float, 4> features(const network& model, std::size_t count);

}  // namespace digits
