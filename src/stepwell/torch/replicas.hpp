// SPDX-License-Identifier: Apache-2.0
//
// State that each process of a group has for itself: the buffers of its modules, and its random numbers.
#pragma once

#include "stepwell/group/group.hpp"

#include <cstdint>

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace stepwell::libtorch {

/// Replaces the floating-point buffers of a module, such as the running means of a batch normalisation, by their means over the processes.
/// Other buffers keep their values. Without a call, each process keeps the buffers of its own batches, and a checkpoint has those of the
/// chief. Call it in each step, or before a step after which the module is evaluated.
/// @errors Those of `group::sum`. `invalid_argument_error` for a buffer on another device than the CPU.
/// @cost   One sum for each element type.
void average_buffers(const ::torch::nn::Module& module, group& all);
/// Replaces all buffers of a module by those of the chief, rank 0.
/// @errors Those of `group::broadcast`. `invalid_argument_error` for a buffer on another device than the CPU.
/// @cost   One broadcast for each buffer.
void broadcast_buffers(const ::torch::nn::Module& module, group& all);

/// Seeds LibTorch's default random generators for one step of one process. Call it at the begin of a step. The random numbers then depend
/// only on the arguments. A resumed run, and a process that replaces a lost one, therefore draw the same numbers as an undisturbed run,
/// although no state of generators is saved. `rank` is the rank of the process, or the index of a part of the data (`parts_of`). With the
/// index of a part, the numbers are independent of the number of processes.
void seed_generators(std::uint64_t seed, int rank, std::int64_t step);

}  // namespace stepwell::libtorch
