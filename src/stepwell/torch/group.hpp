// SPDX-License-Identifier: Apache-2.0
//
// Groups of processes that c10d, the library of LibTorch for several processes, connects. Link `stepwell::torch`.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/group/group.hpp"

#include <memory>

namespace stepwell::libtorch {

/// Options of `make_group`. All processes must use the same values.
struct group_options {
  /// The time limit of a sum and of a broadcast: a process that does not take part in it is lost. The limit includes the time that the
  /// first process to call `sum` waits for the last one. It must be longer than the time that the chief needs for a checkpoint, an
  /// evaluation, or any other work between two steps.
  seconds_value timeout_secs = 60;
  /// See `stepwell::group_options`.
  int min_size = 0;
  seconds_value patience_secs = 30;
  int parts = 0;
};

/// Returns the group of the processes that a launcher has started: torchrun, `mpirun`, Slurm, Kubernetes, or a script that sets `RANK` and
/// `WORLD_SIZE` (see `find_launcher`). `MASTER_ADDR` and `MASTER_PORT` are the host of rank 0 and a free port there; a launcher or its script
/// sets them. A program without a launcher is a group of one process.
///
/// Rank 0 serves the store of c10d, `TCPStore`, at this address; with torchrun, the agent serves it. `ProcessGroupGloo` carries the data, on
/// the network interface through which a process reaches rank 0, or on `GLOO_SOCKET_IFNAME`. Neither has authentication: use them in trusted
/// networks only.
///
/// The group can be formed again in the same processes after a loss: the launcher replaces single processes, or training continues with fewer
/// processes (`min_size`). torchrun replaces all of them.
///
/// All processes get the same bits from a sum. The engine adds `float32`, `float64`, `half`, `int64`, `int32`, `int8`, `uint8`, and, from
/// LibTorch 2 on, `bfloat16`.
///
/// Ignores SIGPIPE in this process, unless the program handles it, because Gloo writes to sockets of lost processes.
/// @errors `invalid_argument_error` if an option is negative, if `min_size` is larger than the group, if a variable of the launcher is wrong, or
///         if `MASTER_ADDR` or `MASTER_PORT` is missing.
[[nodiscard]] std::shared_ptr<group> make_group(const group_options& options = {});

}  // namespace stepwell::libtorch
