// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a saver that are not durable yet.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace stepwell {

/// Sizes of the checkpoints that were passed to a saver and are not durable yet.
struct save_backlog {
  std::uint64_t writing_bytes = 0;              ///< Size of the checkpoint that is being written.
  std::chrono::duration<double> writing_for{};  ///< Time since the start of writing that checkpoint.
  std::uint64_t waiting_bytes = 0;              ///< Total size of the checkpoints in the queue.

  [[nodiscard]] bool empty() const noexcept { return writing_bytes == 0 && waiting_bytes == 0; }

  /// Adds the backlog of another saver that writes at the same time. `writing_for` becomes the maximum of the two times.
  save_backlog& operator+=(const save_backlog& other) noexcept {
    writing_bytes += other.writing_bytes;
    writing_for = std::max(writing_for, other.writing_for);
    waiting_bytes += other.waiting_bytes;
    return *this;
  }
};

}  // namespace stepwell
