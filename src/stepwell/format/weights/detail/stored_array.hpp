// SPDX-License-Identifier: Apache-2.0
//
// Internal: the description of an array in a file that another program wrote.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::format {

/// One array of a file. A file consists of parts: the members of an archive, or one part with the whole file.
struct stored_array {
  std::string name = {};
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape = {};
  std::uint64_t size = 0;    ///< Size of all elements in bytes.
  std::size_t part = 0;      ///< Number of the part that contains the elements.
  std::uint64_t offset = 0;  ///< First byte of the first element in the part.
  /// Distance of neighbours in each dimension, in elements. Empty if the elements lie in row-major order without gaps.
  std::vector<std::int64_t> strides = {};
  bool is_big_endian = false;    ///< Byte order of the elements.
  std::string unsupported = {};  ///< The reason why the elements cannot be read. Empty if they can be.
};

/// Returns the size in bytes of all elements. Returns nothing if a dimension is negative, or if the product of the dimensions other than 0
/// is too large for a signed 64-bit number.
[[nodiscard]] inline std::optional<std::uint64_t> size_of_shape(const tensor_shape& shape, std::uint64_t element_size) noexcept {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t product = element_size;
  bool is_empty = false;
  for (const auto size : shape) {
    if (size < 0) { return std::nullopt; }
    is_empty = is_empty || size == 0;
    if (size > 1 && product > most / static_cast<std::uint64_t>(size)) { return std::nullopt; }
    if (size > 1) { product *= static_cast<std::uint64_t>(size); }
  }
  return is_empty ? 0 : product;
}

}  // namespace stepwell::format
