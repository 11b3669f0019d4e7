// SPDX-License-Identifier: Apache-2.0
//
// MNIST's IDX files: an array of unsigned bytes after a header with the big-endian sizes of its dimensions.
#pragma once

#include <stepwell/base/error.hpp>
#include <stepwell/io/file_system.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace digits {

/// The content of an IDX file. `elements.size()` is the product of `sizes`.
struct idx_array {
  std::vector<std::uint32_t> sizes;  // slowest dimension first; MNIST has {count} and {count, rows, columns}
  std::vector<std::uint8_t> elements;
};

/// Returns the sizes in the header of a file of `file_bytes` bytes, if they match the size of the file exactly.
/// @errors `data_loss`: not an IDX file of unsigned bytes with `rank` dimensions, or the file is too short or too long.
[[nodiscard]] stepwell::result<std::vector<std::uint32_t>> decode_idx_header(std::span<const std::byte> head, std::size_t rank,
                                                                             std::uint64_t file_bytes);

/// Returns the bytes of an IDX file before its elements.
[[nodiscard]] std::vector<std::byte> encode_idx_header(std::span<const std::uint32_t> sizes);

/// Reads the array of the file at `path`, which must have `rank` dimensions. Allocates nothing if the header does not
/// match the file size.
/// @errors `not_found`, `permission_denied`, or `data_loss` as in `decode_idx_header`. Each error names the file.
[[nodiscard]] stepwell::result<idx_array> read_idx(stepwell::io::file_system& files, const std::string& path, std::size_t rank);

/// Writes `array` to the file at `path`. Writes a temporary file and renames it, so that readers never see an
/// incomplete file.
/// @errors Any file-system error, with the file's name. The previous file at `path` is still there.
[[nodiscard]] stepwell::result<void> write_idx(stepwell::io::file_system& files, const std::string& path, const idx_array& array);

}  // namespace digits
