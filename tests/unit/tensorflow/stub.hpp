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
/// If `blocks` is not 0, TF_CloseSession blocks until this is called with 0: the server of the session does not answer.
void stub_block_closing(int blocks);
/// While `blocks` is not 0, no run begins.
void stub_block_runs(int blocks);
/// Blocks until `count` sessions exist, at most for 10 s. Returns 1 if so.
int stub_wait_for_sessions(int count);
/// Returns the number of sessions that exist, and of tensors.
int stub_sessions();
int stub_tensors();
/// Places the train operation of the graphs that are imported from now on. An empty name is no device.
void stub_place_train_op(const char* device);
/// Sets the type of the variable `global_step`: 9 (int64) at first, or 3 (int32).
void stub_set_type_of_step(int type);
/// Sets the name of this variable in the graphs that are imported from now on.
void stub_set_name_of_step(const char* name);
/// Returns 1 if the last run replaced denormal numbers by zero.
int stub_flushes_denormals();
/// Returns 1 if the calling thread is in a function of the stub that allocates memory for its tensors, statuses and runs.
int stub_is_inside();
}
