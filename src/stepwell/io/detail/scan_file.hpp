// SPDX-License-Identifier: Apache-2.0
//
// Private: reads a range of a file piece by piece, without reading holes.
#pragma once

#include "stepwell/base/function_ref.hpp"
#include "stepwell/base/result.hpp"
#include "stepwell/io/file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepwell::io {

/// Receives a range of a file in order: bytes that were read, and runs of zeros that were not.
struct scan_visitor {
  function_ref<result<void>(std::span<const std::byte>)> bytes;
  function_ref<result<void>(std::uint64_t)> zeros;
};

/// Passes `size` bytes from `offset` on to the visitor. Holes of a sparse file take no time.
/// @errors `truncated` if the file ends before; an error of the visitor, which ends the scan; any of the system.
/// @cost   Memory: `scratch`, which must not be empty.
[[nodiscard]] result<void> scan_file(file& source, std::uint64_t offset, std::uint64_t size, std::span<std::byte> scratch,
                                     const scan_visitor& visitor);

}  // namespace stepwell::io
