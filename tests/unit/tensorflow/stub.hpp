// SPDX-License-Identifier: Apache-2.0
//
// Control of the stub of TensorFlow's C library: counts of calls, and failures on demand.
#pragma once

#include <cstdint>

extern "C" {
/// Returns the number of calls of TF_SessionRun since the last reset.
int stub_runs();
/// Returns the number of these calls that executed the train operation.
int stub_train_runs();
/// Returns the number of outputs, and of targets, of the last run.
int stub_last_outputs();
int stub_last_targets();
void stub_reset();
/// Makes run number `run` from now (1 is the next one) fail with `code`.
void stub_fail(int run, int code, const char* message);
/// Returns the number of sessions that exist, and of tensors.
int stub_sessions();
int stub_tensors();
}
