// SPDX-License-Identifier: Apache-2.0
//
// The amount of data that a saver still has to write.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace stepwell {

/// Sizes of the checkpoints that were passed to a saver and are not durable yet.
struct save_backlog {
  std::uint64_t writing_bytes = 0;              ///< Bytes of the checkpoint being written.
  std::chrono::duration<double> writing_for{};  ///< Time since writing it began.
  std::uint64_t waiting_bytes = 0;              ///< Bytes of the checkpoints in the queue.

  [[nodiscard]] bool empty() const noexcept { return writing_bytes == 0 && waiting_bytes == 0; }

  /// Adds the backlog of another saver that writes at the same time. `writing_for` becomes the longer of both.
  save_backlog& operator+=(const save_backlog& other) noexcept {
    writing_bytes += other.writing_bytes;
    writing_for = std::max(writing_for, other.writing_for);
    waiting_bytes += other.waiting_bytes;
    return *this;
  }
};

}  // namespace stepwell
