// SPDX-License-Identifier: Apache-2.0
//
// The rank of this process, from the environment variables of launchers.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace stepwell {

/// How a launcher has started this process.
struct launched_process {
  std::string launcher;  ///< "torchrun", "Open MPI", "MPICH", "Slurm" or "Kubernetes".
  int rank = 0;          ///< From 0.
  int size = 1;          ///< The number of processes.
  int local_rank = 0;    ///< The rank among the processes of this machine, for example to select a device.
  /// Host and port of rank 0. The host is empty, and the port 0, if the launcher does not give them.
  std::string host = {};
  int port = 0;
  /// True if the launcher itself serves torch's store at this address (`TORCHELASTIC_USE_AGENT_STORE`).
  bool has_store = false;
};

/// Reads the environment variables of launchers: `RANK` and `WORLD_SIZE` (torchrun, or set by hand, with `MASTER_ADDR` and `MASTER_PORT`),
/// those of Open MPI, of MPICH and of Slurm, and `JOB_COMPLETION_INDEX` of a Kubernetes indexed job with `STEPWELL_GROUP_SIZE`. `MASTER_ADDR`
/// and `MASTER_PORT` apply to all launchers. For a process that `srun` has started, the host is the first one of `SLURM_STEP_NODELIST` unless
/// `MASTER_ADDR` is set. Returns nullopt without a launcher. `variable` returns the value of a variable, or null.
/// @errors `invalid_argument_error` that names the variable if a value is malformed, if the rank is the size or above, if a rank has no size,
///         if `MASTER_ADDR` is not a host alone, or if a batch script of Slurm for several tasks has started the program without `srun`.
[[nodiscard]] std::optional<launched_process> find_launcher(const std::function<const char*(const char*)>& variable);
[[nodiscard]] std::optional<launched_process> find_launcher();

}  // namespace stepwell
