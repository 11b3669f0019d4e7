// SPDX-License-Identifier: Apache-2.0
//
// What a saver still has to write.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace stepwell {

/// Checkpoints that were handed over and are not durable yet.
struct save_backlog {
  std::uint64_t writing_bytes = 0;              ///< Of the one being written.
  std::chrono::duration<double> writing_for{};  ///< How long it has been at it.
  std::uint64_t waiting_bytes = 0;              ///< Of those that wait for it.

  [[nodiscard]] bool empty() const noexcept { return writing_bytes == 0 && waiting_bytes == 0; }

  /// Two savers that write side by side.
  save_backlog& operator+=(const save_backlog& other) noexcept {
    writing_bytes += other.writing_bytes;
    writing_for = std::max(writing_for, other.writing_for);
    waiting_bytes += other.waiting_bytes;
    return *this;
  }
};

}  // namespace stepwell
