// SPDX-License-Identifier: Apache-2.0
//
// Internal: the header of a safetensors file. The file consists of the length of the header (8 bytes, little-endian), the header (JSON), and
// the elements of all arrays, in row-major order and without gaps. Numbers are little-endian.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/format/weights/detail/stored_array.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::format {

inline constexpr std::uint64_t max_safetensors_header = 100'000'000;  ///< The limit of the format, in bytes.
inline constexpr std::size_t safetensors_length_size = 8;             ///< Bytes before the header.

/// Returns the arrays, in the order of their elements. Their offsets count from the beginning of the file. A type that this library lacks
/// is `dtype::invalid`, and `stored_array::unsupported` names it.
/// @pre    `header` is the JSON text, and `data_size` is the size of everything after it.
/// @errors `data_loss` if the header is no JSON of the documented form, contains a name twice, or gives an array another size than that of
///         its elements; or if the arrays overlap, leave gaps, or do not end at the end of the file.
/// @cost   Memory for at most 8 times the size of the header.
[[nodiscard]] result<std::vector<stored_array>> decode_safetensors_header(std::string_view header, std::uint64_t data_size);

/// An array in the index of several files of weights, such as "model.safetensors.index.json".
struct indexed_array {
  std::string name;
  std::string file;  ///< Name of the file with the array, in the directory of the index.
};

/// Returns the arrays of the object "weight_map" of an index, which is JSON.
/// @errors `data_loss` if it is no JSON of this form, or if a file is not in the directory of the index.
/// @cost   Memory for at most 64 times the size of the index.
[[nodiscard]] result<std::vector<indexed_array>> decode_shard_index(std::string_view index);

/// An array that is to be written.
struct safetensors_array {
  std::string_view name;
  stepwell::dtype dtype = dtype::invalid;
  shape_view shape;
};

/// Returns the name of the type in a safetensors file. Quantised integers are plain integers. Types that the format lacks, but that have one
/// byte for each element (int4), are "U8". Returns an empty text for complex128 and for types without a fixed size.
[[nodiscard]] std::string_view safetensors_type(dtype type) noexcept;

/// Returns everything that precedes the elements: the length, and the header with spaces at the end, so that the elements begin at a
/// multiple of 8. The elements of `arrays` follow in this order.
/// @errors `invalid_argument` if the header would be too long, or if the format cannot hold an array: its name is "__metadata__" or not UTF-8,
///         or `safetensors_type` returns nothing for its type. Also if a text of `metadata` is not UTF-8.
[[nodiscard]] result<std::string> encode_safetensors_header(std::span<const safetensors_array> arrays,
                                                            std::span<const std::pair<std::string, std::string>> metadata);

}  // namespace stepwell::format
