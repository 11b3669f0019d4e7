// SPDX-License-Identifier: Apache-2.0
//
// Pictures of 8-bit channels as PNG files.
#pragma once

#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stepwell::format {

/// The bytes of a PNG file. `pixels` are rows from the top, channels interleaved; `channels`: 1 gray, 2 gray and alpha,
/// 3 RGB, 4 RGBA. `level` is zlib's, 0 to 9.
/// @errors `invalid_argument`: `pixels` is not width * height * channels bytes, is empty or above 1 GiB, or there are
///         other channels than these.
/// @cost   Dominated by zlib: roughly 20 to 50 MB/s a core at the default level.
[[nodiscard]] result<std::string> encode_png(std::span<const std::byte> pixels, std::uint32_t width, std::uint32_t height, int channels,
                                             int level = 6);

}  // namespace stepwell::format
