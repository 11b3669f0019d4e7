// SPDX-License-Identifier: Apache-2.0
//
// A whole file in memory, never more of it than the caller is ready for.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::io {

/// All bytes of the file `path`.
/// @errors `invalid_argument` if it has more than `max_bytes`; nothing is then read. `not_found` if there is none.
[[nodiscard]] result<std::vector<std::byte>> read_file(file_system& files, const std::string& path, std::uint64_t max_bytes);

/// The same as text.
[[nodiscard]] result<std::string> read_text_file(file_system& files, const std::string& path, std::uint64_t max_bytes);

}  // namespace stepwell::io
