// SPDX-License-Identifier: Apache-2.0
//
// Groups of processes that MPI connects. Link `stepwell::mpi`.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/group/group.hpp"

#include <memory>

namespace stepwell::mpi {

/// The exit code of a process that ends its job because another process of the group is lost or has failed: EX_TEMPFAIL, a temporary failure.
inline constexpr int lost_exit_code = 75;

/// Options of `make_group`.
struct options {
  /// The time limit of one operation of the group. MPI itself has none: if a process is stopped or cut off, the others wait for it for ever.
  /// At the limit, the job ends with `lost_exit_code`. The error log names the processes that are missing. The limit applies to sums,
  /// broadcasts and MPI_Finalize, but not to the formation of the group (see `max_wait_secs` of the session). 0: no limit.
  seconds_value timeout_secs = 60;
  /// Number of parts of each batch for equal bits, see `group_options::parts`.
  int parts = 0;
  /// Clock of the time limit.
  std::shared_ptr<stepwell::clock> clock = system_clock();
};

/// Returns the group of all processes of this MPI job. `mpirun` and `srun` start such a job; a program without a launcher is a group of one
/// process. All processes call `make_group`, with the same options. `argc` and `argv` are the parameters of `main`, or null.
///
/// Calls MPI_Init_thread, and MPI_Finalize when the last group is destroyed. If the program has initialised MPI, it also finalises MPI, after
/// it has destroyed the group.
///
/// A lost process ends the job. A job that is started again continues from the newest checkpoint. The same happens
/// after a failure of a session in a group of several processes.
///
/// All processes get the same bits from a sum, except for the payload of NaN. MPI's standard only recommends this; Open MPI and MPICH do so.
/// The engine adds integers, floating-point numbers of 32 and 64 bits, and complex numbers.
/// @errors `invalid_argument_error` if an option is negative or `time` is null. `failed_precondition_error` if MPI was finalised before, if
///         it does not support the calls of several threads, or if another launcher has started several processes, and the MPI job consists
///         only of this one. The message names the remedy.
[[nodiscard]] std::shared_ptr<group> make_group(int* argc, char*** argv, const options& options = {});

}  // namespace stepwell::mpi
