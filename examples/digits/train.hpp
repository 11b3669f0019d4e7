// SPDX-License-Identifier: Apache-2.0
//
// The training run.
#pragma once

#include "dataset.hpp"
#include "network.hpp"
#include "options.hpp"

#include <stepwell/protocol/session_signals.hpp>

#include <cstdint>

namespace digits {

/// The step at which a training run has ended, and the reason.
struct outcome {
  std::int64_t step;
  stepwell::stop_reason why;
};

/// Trains `model` on `data.train` up to step `wanted.steps` or up to the end of epoch `wanted.epochs`, from the newest
/// checkpoint of the run directory. Stops earlier if the process gets SIGINT or SIGTERM. Measures the model on `data.test` after each epoch, and saves the one
/// with the highest accuracy.
outcome train(network& model, const datasets& data, const options& wanted);

}  // namespace digits
