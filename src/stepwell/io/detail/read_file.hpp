// SPDX-License-Identifier: Apache-2.0
//
// Functions that read a complete file into memory, up to a size limit.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::io {

/// Returns all bytes of the file `path`.
/// @errors `invalid_argument` if the file has more than `max_bytes`; no byte is then read. `not_found` if it does not exist.
///         `resource_exhausted` if there is not enough memory. Any error of the file system.
[[nodiscard]] result<std::vector<std::byte>> read_file(file_system& files, const std::string& path, std::uint64_t max_bytes);

/// Like `read_file`, but returns a string.
[[nodiscard]] result<std::string> read_text_file(file_system& files, const std::string& path, std::uint64_t max_bytes);

}  // namespace stepwell::io
