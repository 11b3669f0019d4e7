// SPDX-License-Identifier: Apache-2.0
//
// Questions to the other processes of a job: which operation does each of them execute?
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/mpi/detail/watchdog.hpp"

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::mpi::detail {

/// Sends questions and answers over a communicator of its own. The watchdog threads answer, also while their processes compute or wait in an
/// operation. A process that is stopped, has ended or cannot be reached gives no answer.
class peers {
public:
  /// Calls MPI_Comm_dup, as all processes must.
  explicit peers(const progress_mark& mine);
  peers(const peers&) = delete;
  peers& operator=(const peers&) = delete;
  /// @pre No other thread uses this object.
  ~peers();

  /// Answers the questions that have arrived.
  /// @threads One thread at a time.
  void answer();
  /// Returns a text that names two kinds of ranks: those that have not begun the operation of `late`, and those without an answer within
  /// `limit`. Calls `answer` meanwhile if `is_answering`, because the other processes may have the same question at the same time.
  [[nodiscard]] std::string missing(const progress& late, clock::duration limit, bool is_answering);

private:
  struct sent_answer {
    std::uint64_t progress = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  const progress_mark& mine_;
  MPI_Comm processes_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::vector<sent_answer> answers_;  // by rank
};

}  // namespace stepwell::mpi::detail
