// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli), the checksum of records, tables and tensors, and its masked form, which is stored in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepwell::kernel {

/// Returns the checksum of `bytes`. `initial` is the checksum of preceding bytes: the result is then the checksum of both parts together.
/// Any alignment and any length.
/// @threads Any.
/// @cost    O(n). The first call selects the fastest path of this machine. With SSE4.2 above 15 GB/s for inputs of a few KiB or more.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial = 0) noexcept;

/// Returns the checksum of two concatenated parts, from the checksum of each part and the length of the second part in bytes.
/// @cost O(log `second_size`). Does not read the bytes.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept;

/// Returns the checksum of the bytes with checksum `initial`, followed by `count` zero bytes. @cost O(log `count`).
[[nodiscard]] std::uint32_t crc32c_zeros(std::uint64_t count, std::uint32_t initial = 0) noexcept;

inline constexpr std::uint32_t crc32c_mask_delta = 0xA282EAD8;

/// Returns the masked form of a checksum, which is stored in files. Masking keeps the CRC effective for bytes that contain checksums.
[[nodiscard]] constexpr std::uint32_t crc32c_mask(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + crc32c_mask_delta; }

/// Returns the checksum of a masked form.
[[nodiscard]] constexpr std::uint32_t crc32c_unmask(std::uint32_t masked) noexcept {
  const std::uint32_t rotated = masked - crc32c_mask_delta;
  return (rotated >> 17) | (rotated << 15);
}

/// The implementations of the checksum, slowest first.
enum class crc32c_path {
  portable,  ///< Eight tables, eight bytes per step. Available on all machines.
  sse42,     ///< The crc32 instruction on three streams, joined by carry-less multiplication instructions.
  armv8,     ///< The crc32c instruction of ARMv8 on three streams, joined by multiplication in software.
};

[[nodiscard]] std::string_view to_string(crc32c_path path) noexcept;

/// Returns the paths that this machine can run, slowest first. `crc32c` uses the last one.
[[nodiscard]] std::span<const crc32c_path> crc32c_paths() noexcept;

/// Like `crc32c`, but uses the given path. For tests and benchmarks. @pre `path` is one of `crc32c_paths()`.
[[nodiscard]] std::uint32_t crc32c_by(crc32c_path path, std::span<const std::byte> bytes, std::uint32_t initial = 0) noexcept;

}  // namespace stepwell::kernel
