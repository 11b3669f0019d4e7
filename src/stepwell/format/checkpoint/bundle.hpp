// SPDX-License-Identifier: Apache-2.0
//
// What the index of a checkpoint says: one header, one entry a tensor, and the keys of slices.
#pragma once

#include "stepwell/base/dtype.hpp"
#include "stepwell/base/result.hpp"
#include "stepwell/base/tensor.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// How the data files are to be read; stored under the empty key.
struct bundle_header {
  std::int32_t num_shards = 1;
  bool is_big_endian = false;  ///< Of the numbers in the data files.
  std::int32_t producer = 1;
  std::int32_t min_consumer = 0;
  std::vector<std::int32_t> bad_consumers;
  friend bool operator==(const bundle_header&, const bundle_header&) = default;
};

/// The part of one dimension that a slice covers.
struct slice_extent {
  static constexpr std::int64_t whole = -1;
  std::int64_t start = 0;
  std::int64_t length = whole;  ///< `whole`: all of the dimension, and `start` is 0.
  friend bool operator==(const slice_extent&, const slice_extent&) = default;
};

/// One part of a partitioned tensor: an extent a dimension.
using tensor_slice = std::vector<slice_extent>;

/// Where a tensor's bytes are and what they mean. With slices, only dtype and shape mean anything.
struct bundle_entry {
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::int32_t shard_id = 0;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::uint32_t crc32c = 0;  ///< Masked.
  std::vector<tensor_slice> slices;
  friend bool operator==(const bundle_entry&, const bundle_entry&) = default;
};

/// Byte for byte what TensorFlow writes.
[[nodiscard]] std::string encode(const bundle_header& header);
[[nodiscard]] std::string encode(const bundle_entry& entry);

/// @errors `data_loss` for bytes that are no header or a shard count below 1; `unimplemented` for a header that
///         excludes readers of today.
[[nodiscard]] result<bundle_header> decode_bundle_header(std::string_view bytes);

/// @errors `data_loss` for bytes that are no entry; negative numbers; a shape whose bytes cannot be counted in 63 bits;
///         a size that is not that of the shape's elements; slices of another rank than the shape.
[[nodiscard]] result<bundle_entry> decode_bundle_entry(std::string_view bytes);

/// The key under which a slice's own entry stands (an "ordered code": sorts before all names).
[[nodiscard]] std::string slice_key(std::string_view name, const tensor_slice& slice);

/// What a slice key says.
struct parsed_slice_key {
  std::string name;
  tensor_slice slice;
};
[[nodiscard]] inline bool is_slice_key(std::string_view key) noexcept { return !key.empty() && key.front() == '\0'; }
/// @errors `data_loss` for anything `slice_key` would not write.
[[nodiscard]] result<parsed_slice_key> parse_slice_key(std::string_view key);

/// "PREFIX.index" and "PREFIX.data-00001-of-00002".
[[nodiscard]] std::string index_name(std::string_view prefix);
[[nodiscard]] std::string data_name(std::string_view prefix, std::int32_t shard, std::int32_t shards);

}  // namespace stepwell::format
