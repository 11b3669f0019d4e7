// SPDX-License-Identifier: Apache-2.0
//
// PNG encoding of images with 8-bit channels.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stepwell::format {

/// Returns the bytes of a PNG file. `pixels` has the rows from top to bottom, with interleaved channels. `channels` is 1 for gray, 2 for
/// gray and alpha, 3 for RGB, 4 for RGBA. `level` is the compression level of zlib, 0 to 9.
/// @errors `invalid_argument` if `pixels` is empty, is above 1 GiB or does not have width * height * channels bytes, or if `channels` or
///         `level` is out of range. `resource_exhausted` if zlib fails.
/// @cost   Dominated by zlib: about 20 to 50 MB/s per core at the default level.
[[nodiscard]] result<std::string> encode_png(std::span<const std::byte> pixels, std::uint32_t width, std::uint32_t height, int channels,
                                             int level = 6);

}  // namespace stepwell::format
