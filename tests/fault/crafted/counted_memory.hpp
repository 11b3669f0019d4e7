// SPDX-License-Identifier: Apache-2.0
//
// Counts the bytes that operator new has handed out. Link counted_memory.cpp into a program that includes this.
#pragma once

#include <cstddef>

namespace stepwell::test {

/// Bytes that are allocated now, by all threads.
[[nodiscard]] std::size_t allocated_bytes() noexcept;

/// The most that was allocated at once since `reset_peak`.
[[nodiscard]] std::size_t peak_bytes() noexcept;
void reset_peak() noexcept;

}  // namespace stepwell::test
