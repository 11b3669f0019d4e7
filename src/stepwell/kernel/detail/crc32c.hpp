// SPDX-License-Identifier: Apache-2.0
//
// CRC-32C (Castagnoli), the checksum of records, tables and tensors, and its masked form, which is stored in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepwell::kernel {

/// Returns the checksum of `bytes`. `initial` is the checksum of preceding bytes: the result is then the checksum of both parts together.
/// Any alignment and any length.
/// @threads Any.
/// @cost    O(n). ISA-L selects the fastest instructions of this machine.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial = 0) noexcept;

/// Returns the checksum of two concatenated parts, from the checksum of each part and the length of the second part in bytes.
/// @cost O(log `second_size`). Does not read the bytes.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second, std::uint64_t second_size) noexcept;

/// Returns the checksum of the bytes with checksum `initial`, followed by `count` zero bytes. @cost O(log `count`).
[[nodiscard]] std::uint32_t crc32c_zeros(std::uint64_t count, std::uint32_t initial = 0) noexcept;

/// Returns the masked form of a checksum, which is stored in files. Masking keeps the CRC effective for bytes that contain checksums.
[[nodiscard]] constexpr std::uint32_t crc32c_mask(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8; }

}  // namespace stepwell::kernel
