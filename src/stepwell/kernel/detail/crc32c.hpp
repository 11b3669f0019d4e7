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

/// Returns the masked form of a checksum, which is stored in files. Masking keeps the CRC effective for bytes that contain checksums.
[[nodiscard]] constexpr std::uint32_t crc32c_mask(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8; }

/// Returns the name of the implementation that `crc32c` uses on this machine: "sse42", "armv8" (instructions on three streams), or
/// "portable" (eight tables, eight bytes per step).
[[nodiscard]] std::string_view crc32c_path() noexcept;

/// Like `crc32c`, but always uses the portable implementation. For tests and benchmarks.
[[nodiscard]] std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t initial = 0) noexcept;

}  // namespace stepwell::kernel
