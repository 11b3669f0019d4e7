// SPDX-License-Identifier: Apache-2.0
//
// Declares the kernels as -march=native compiles them, and a read of all bytes, which is the limit.
#pragma once

#include <stepwell/kernel/detail/simd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepwell::bench {

extern const kernel::simd_kernels native_kernels;

/// Reads all bytes, and returns a number that depends on most of them.
[[nodiscard]] std::uint64_t read_all(std::span<const std::byte> bytes) noexcept;

}  // namespace stepwell::bench
