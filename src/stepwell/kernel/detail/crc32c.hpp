// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli), the checksum of records, tables and tensors, and the masked form in which files store it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepwell::kernel {

/// The checksum of `bytes`; with `initial`, of whatever `initial` is the checksum of followed by `bytes`.
/// Any alignment, any length.
/// @threads Any.
/// @cost    Picks the fastest path of this machine at the first call; above 15 GB/s with SSE4.2 once some KiB long.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial = 0) noexcept;

/// The checksum of two pieces joined, from the checksum of each and the length of the second.
/// @cost O(log `second_size`); the bytes are not needed.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept;

/// The checksum of what `initial` is the checksum of, followed by `count` zero bytes. @cost O(log `count`).
[[nodiscard]] std::uint32_t crc32c_zeros(std::uint64_t count, std::uint32_t initial = 0) noexcept;

inline constexpr std::uint32_t crc32c_mask_delta = 0xA282EAD8;

/// The form that stands in files: a checksum over bytes that hold checksums stays a good one.
[[nodiscard]] constexpr std::uint32_t crc32c_mask(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + crc32c_mask_delta; }

[[nodiscard]] constexpr std::uint32_t crc32c_unmask(std::uint32_t masked) noexcept {
  const std::uint32_t rotated = masked - crc32c_mask_delta;
  return (rotated >> 17) | (rotated << 15);
}

/// The ways of computing it, slowest first.
enum class crc32c_path {
  portable,  ///< Eight tables, eight bytes a step. Everywhere.
  sse42,     ///< The crc32 instruction on three streams, joined by carry-less multiplication.
  armv8,     ///< The same with ARMv8's crc32c instruction.
};

[[nodiscard]] std::string_view to_string(crc32c_path path) noexcept;

/// The paths this machine can run, slowest first; `crc32c` takes the last.
[[nodiscard]] std::span<const crc32c_path> crc32c_paths() noexcept;

/// `crc32c` by one path, for tests and benchmarks. @pre `path` is one of `crc32c_paths()`.
[[nodiscard]] std::uint32_t crc32c_by(crc32c_path path, std::span<const std::byte> bytes, std::uint32_t initial = 0) noexcept;

}  // namespace stepwell::kernel
