// SPDX-License-Identifier: Apache-2.0
//
// Counts the bytes allocated by operator new. A program that includes this links counted_memory.cpp.
#pragma once

#include <cstddef>

namespace stepwell::test {

/// Returns the number of bytes that are allocated now, by all threads.
[[nodiscard]] std::size_t allocated_bytes() noexcept;

/// Returns the maximum of allocated_bytes() since `reset_peak`.
[[nodiscard]] std::size_t peak_bytes() noexcept;
void reset_peak() noexcept;

}  // namespace stepwell::test
