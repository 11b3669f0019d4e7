// SPDX-License-Identifier: Apache-2.0
//
// The content of a checkpoint's index: one header, one entry for each tensor, and one entry for each slice of a partitioned tensor.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The header of an index. It describes the data files, and is stored under the empty key.
struct bundle_header {
  std::int32_t num_shards = 1;
  bool is_big_endian = false;  ///< Byte order of the numbers in the data files.
  std::int32_t producer = 1;
  std::int32_t min_consumer = 0;
  std::vector<std::int32_t> bad_consumers;
  friend bool operator==(const bundle_header&, const bundle_header&) = default;
};

/// The part of one dimension that a slice covers.
struct slice_extent {
  static constexpr std::int64_t whole = -1;
  std::int64_t start = 0;
  std::int64_t length = whole;  ///< Number of elements, or `whole` for the complete dimension; `start` is then 0.
  friend bool operator==(const slice_extent&, const slice_extent&) = default;
};

/// One part of a partitioned tensor: one extent for each dimension.
using tensor_slice = std::vector<slice_extent>;

/// The entry of a tensor: the type, the shape and the place of its bytes. If there are slices, only `dtype` and `shape` are used.
struct bundle_entry {
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::int32_t shard_id = 0;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::uint32_t crc32c = 0;  ///< Masked checksum of the bytes.
  std::vector<tensor_slice> slices;
  friend bool operator==(const bundle_entry&, const bundle_entry&) = default;
};

/// Returns the serialized message. The bytes are identical to those that TensorFlow writes.
[[nodiscard]] std::string encode(const bundle_header& header);
[[nodiscard]] std::string encode(const bundle_entry& entry);

/// Returns the header in a serialized message.
/// @errors `data_loss` if the bytes are not a header, if the number of shards is below 1, if the producer is negative, or if the byte order
///         is unknown. `unimplemented` if the header requires a newer reader.
[[nodiscard]] result<bundle_header> decode_bundle_header(std::string_view bytes);

/// Returns the entry in a serialized message.
/// @errors `data_loss` in these cases: The bytes are not an entry. A number is negative. The rank is unknown. The end of the tensor or the
///         size of the shape in bytes does not fit into 63 bits. The size differs from the size of the shape. A slice has another rank than
///         the shape or exceeds it.
[[nodiscard]] result<bundle_entry> decode_bundle_entry(std::string_view bytes);

/// Returns the key of the entry of a slice. The key is an "ordered code", and sorts before the names of all tensors.
[[nodiscard]] std::string slice_key(std::string_view name, const tensor_slice& slice);

/// The content of a slice key.
struct parsed_slice_key {
  std::string name;
  tensor_slice slice;
};
/// Returns true if `key` is the key of a slice.
[[nodiscard]] inline bool is_slice_key(std::string_view key) noexcept { return !key.empty() && key.front() == '\0'; }
/// Returns the content of a slice key. @errors `data_loss` if `slice_key` cannot have written `key`.
[[nodiscard]] result<parsed_slice_key> parse_slice_key(std::string_view key);

/// Returns the name of the index file, "PREFIX.index", or of a data file, "PREFIX.data-00001-of-00002".
[[nodiscard]] std::string index_name(std::string_view prefix);
[[nodiscard]] std::string data_name(std::string_view prefix, std::int32_t shard, std::int32_t shards);

}  // namespace stepwell::format
