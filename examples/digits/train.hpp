// SPDX-License-Identifier: Apache-2.0
//
// The training run.
#pragma once

#include "dataset.hpp"
#include "network.hpp"
#include "options.hpp"

#include <cstdint>

namespace digits {

/// Trains `model` on `data.train` up to step `wanted.steps`, from the newest checkpoint of the run directory. Returns
/// the last step.
std::int64_t train(network& model, const datasets& data, const options& wanted);

}  // namespace digits
