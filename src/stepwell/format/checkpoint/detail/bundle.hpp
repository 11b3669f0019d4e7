// SPDX-License-Identifier: Apache-2.0
//
// Private: the content of a checkpoint's index: one header, one entry for each tensor, and one entry for each slice of a partitioned tensor.
// A partitioned tensor is one that is stored in parts, called slices.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The header of an index. It describes the data files, and is stored under the empty key.
struct bundle_header {
  std::int32_t num_shards = 1;              ///< Number of data files.
  bool is_big_endian = false;               ///< Byte order of the numbers in the data files.
  std::int32_t producer = 1;                ///< Version of the writer.
  std::int32_t min_consumer = 0;            ///< Version of the oldest reader that may read the checkpoint.
  std::vector<std::int32_t> bad_consumers;  ///< Versions of readers that must not read the checkpoint.
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

/// The entry of a tensor: the type, the shape and the place of its bytes. If `slices` is not empty, only `dtype`, `shape` and `slices` are
/// used: each slice has an entry of its own, with the place of its bytes.
struct bundle_entry {
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::int32_t shard_id = 0;         ///< Index of the data file.
  std::int64_t offset = 0;           ///< Offset of the first byte in the data file.
  std::int64_t size = 0;             ///< Number of bytes.
  std::uint32_t crc32c = 0;          ///< CRC-32C of the bytes, masked (rotated, plus a constant) as in docs/formats/README.md.
  std::vector<tensor_slice> slices;  ///< The slices of a partitioned tensor.
  friend bool operator==(const bundle_entry&, const bundle_entry&) = default;
};

/// Returns the header or the entry as a serialized message. The bytes are identical to those that TensorFlow writes.
[[nodiscard]] std::string encode(const bundle_header& header);
[[nodiscard]] std::string encode(const bundle_entry& entry);

/// Decodes the header from the serialized message `bytes`.
/// @errors `data_loss` if the bytes are not a header, if the number of shards is below 1, if the producer is negative, or if the byte order
///         is unknown. `unimplemented` if the header requires a newer reader than this one, or excludes the version of this reader.
[[nodiscard]] result<bundle_header> decode_bundle_header(std::string_view bytes);

/// Decodes the entry from the serialized message `bytes`.
/// @errors `data_loss` in these cases: The bytes are not an entry. The shard number, the offset, the size or a dimension is negative. The
///         rank is unknown. `offset + size`, or the number of bytes that type and shape need, does not fit into 63 bits. `size` is not the
///         number of bytes that type and shape need (checked only for an entry without slices whose type has a fixed size). A slice has
///         another rank than the shape, or lies outside the shape.
[[nodiscard]] result<bundle_entry> decode_bundle_entry(std::string_view bytes);

/// Returns the key of the entry of a slice. The key is an "ordered code": the bytes of two keys compare in the same way as the names and
/// numbers from which the keys were made. The key of a slice sorts before the names of all tensors.
[[nodiscard]] std::string slice_key(std::string_view name, const tensor_slice& slice);

/// Returns true if `key` is the key of a slice.
[[nodiscard]] inline bool is_slice_key(std::string_view key) noexcept { return !key.empty() && key.front() == '\0'; }

/// Returns the name of the index file, "PREFIX.index", or of a data file, "PREFIX.data-00001-of-00002".
[[nodiscard]] std::string index_name(std::string_view prefix);
[[nodiscard]] std::string data_name(std::string_view prefix, std::int32_t shard, std::int32_t shards);

/// The end of the name of an index file.
inline constexpr std::string_view index_suffix = ".index";

/// Returns the prefix of the checkpoint whose index file has this name or path. Empty if it is not the name of an index file.
/// @lifetime Refers to `name`.
[[nodiscard]] inline std::optional<std::string_view> prefix_of_index(std::string_view name) noexcept {
  return name.ends_with(index_suffix) ? std::optional(name.substr(0, name.size() - index_suffix.size())) : std::nullopt;
}

}  // namespace stepwell::format
