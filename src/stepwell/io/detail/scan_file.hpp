// SPDX-License-Identifier: Apache-2.0
//
// Private: reads a range of a file in pieces, and skips holes.
#pragma once

#include "stepwell/base/function_ref.hpp"
#include "stepwell/base/result.hpp"
#include "stepwell/io/file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepwell::io {

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
