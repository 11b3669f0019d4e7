// SPDX-License-Identifier: Apache-2.0
//
// MNIST's IDX files: unsigned bytes in an array of some dimensions, sizes first and big-endian.
#pragma once

#include <stepwell/base/result.hpp>
#include <stepwell/io/file_system.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace digits {

/// What an IDX file holds. `elements.size()` is the product of `sizes`.
struct idx_array {
  std::vector<std::uint32_t> sizes;  // slowest first; MNIST has {count} and {count, rows, columns}
  std::vector<std::uint8_t> elements;
};

/// The sizes said by the first bytes of a file of `file_bytes` bytes, if the rest of the file is exactly what they ask for.
/// @errors `data_loss`: not an IDX file of unsigned bytes with `rank` dimensions, cut short, or with bytes to spare.
[[nodiscard]] stepwell::result<std::vector<std::uint32_t>> decode_idx_header(std::span<const std::byte> head, std::size_t rank,
                                                                             std::uint64_t file_bytes);

/// The bytes of an IDX file before its elements.
[[nodiscard]] std::vector<std::byte> encode_idx_header(std::span<const std::uint32_t> sizes);

/// The array in the file at `path`, which must have `rank` dimensions. Nothing is allocated for a file that lies about its size.
/// @errors `not_found`, `permission_denied`; `data_loss` as `decode_idx_header`. Each names the file.
[[nodiscard]] stepwell::result<idx_array> read_idx(stepwell::io::file_system& files, const std::string& path, std::size_t rank);

/// Makes the file at `path` hold `array`: written aside and renamed, so that nobody ever sees half of it.
/// @errors Any file-system error, naming the file; what was at `path` before is then still there.
[[nodiscard]] stepwell::result<void> write_idx(stepwell::io::file_system& files, const std::string& path, const idx_array& array);

}  // namespace digits
