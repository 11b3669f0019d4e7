// SPDX-License-Identifier: Apache-2.0
//
// Reads of complete files into memory, and of ranges in pieces.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepwell::io {

/// Returns all bytes of the file `path`.
/// @errors `invalid_argument` if the file has more than `max_bytes`; no byte is then read. `not_found` if it does not exist.
///         `resource_exhausted` if there is not enough memory. Any error of the file system.
[[nodiscard]] result<std::vector<std::byte>> read_file(file_system& files, const std::string& path, std::uint64_t max_bytes);

/// Like `read_file`, but returns a string.
[[nodiscard]] result<std::string> read_text_file(file_system& files, const std::string& path, std::uint64_t max_bytes);

/// A visitor that receives a range of a file in order: `bytes` receives bytes that were read, `zeros` receives the sizes of skipped holes.
struct scan_visitor {
  function_ref<result<void>(std::span<const std::byte>)> bytes;
  function_ref<result<void>(std::uint64_t)> zeros;
};

/// Passes `size` bytes at `offset` to the visitor. Uses `scratch` as the buffer. Does not read the holes of a sparse file.
/// @pre    `scratch` has at least one byte.
/// @errors `truncated` if the file ends inside the range. An error of the visitor, which ends the scan. Any error of the system.
/// @cost   No memory besides `scratch`. Holes take no time.
[[nodiscard]] result<void> scan_file(file& source, std::uint64_t offset, std::uint64_t size, std::span<std::byte> scratch,
                                     const scan_visitor& visitor);

}  // namespace stepwell::io
