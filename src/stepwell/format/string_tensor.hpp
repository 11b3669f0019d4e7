// SPDX-License-Identifier: Apache-2.0
//
// How a tensor of strings stands in a data file: lengths, a checksum of the lengths, then the bytes of all.
#pragma once

#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The bytes of a string tensor and the checksum its index entry carries.
struct encoded_strings {
  std::string bytes;
  std::uint32_t crc32c = 0;  ///< Masked. Not that of `bytes`: lengths count as fixed-size numbers.
};
[[nodiscard]] encoded_strings encode_strings(std::span<const std::string> elements);

/// The strings of a tensor, and the checksum its entry ought to have.
struct decoded_strings {
  std::vector<std::string> elements;
  std::uint32_t crc32c = 0;  ///< Masked; the caller compares.
};
/// @errors `data_loss` when `bytes` do not hold exactly `count` strings, or the checksum of the lengths is wrong.
/// @cost   Memory in proportion to `bytes`, whatever `count` and the lengths claim.
[[nodiscard]] result<decoded_strings> decode_strings(std::string_view bytes, std::uint64_t count);

}  // namespace stepwell::format
