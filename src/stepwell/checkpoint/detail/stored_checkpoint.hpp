// SPDX-License-Identifier: Apache-2.0
//
// Internal: the validated content of a checkpoint's index, and its open data files.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/format/checkpoint/bundle.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepwell::detail {

/// Location of the bytes of a tensor or of one of its slices.
struct stored_place {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::int32_t shard = 0;
  std::uint32_t crc32c = 0;  ///< Masked.
};

/// One slice of a partitioned tensor.
struct stored_slice {
  format::tensor_slice slice;
  stored_place where;
};

/// The content of an index.
struct stored_index {
  format::bundle_header header;
  std::vector<checkpoint_entry> entries;                    ///< Sorted by name.
  std::vector<stored_place> places;                         ///< Location of each entry; unused for a partitioned one.
  std::map<std::size_t, std::vector<stored_slice>> slices;  ///< Slices of each partitioned entry, by its position in `entries`.
};

/// Returns true if a failure to read a checkpoint is specific to this checkpoint, so that another one may be readable. Returns
/// false for all other failures.
[[nodiscard]] bool is_damage(const error& failure) noexcept;

/// Reads and validates the index of `prefix`, and sorts its entries. Throws the errors that `checkpoint_reader` documents.
/// @cost Memory: at most 4 times the size of the index file plus 60 MiB. An index that needs more is treated as damaged.
[[nodiscard]] stored_index load_index(io::file_system& files, const std::string& prefix);

/// One open data file.
struct data_file {
  std::unique_ptr<io::file> file;
  std::uint64_t size = 0;
};

/// Opens all data files. Throws `data_loss_error` if one is missing.
[[nodiscard]] std::vector<data_file> open_data_files(io::file_system& files, const std::string& prefix, std::int32_t shards);

/// Throws `data_loss_error` if an entry lies outside its data file or shares bytes with another entry. So each byte of a data file
/// is read at most once. `place` is the path of the index, for the message.
void check_places(const stored_index& index, const std::vector<data_file>& data, const std::string& place);

/// Returns the shape of the part of a tensor that a slice selects.
[[nodiscard]] tensor_shape part_shape(const format::tensor_slice& slice, const tensor_shape& whole);

/// Copies elements of a slice, in row-major order, to their positions in the whole tensor. `first` is the number of the first
/// element within the slice.
/// @pre The slice lies inside the tensor; `elements` contains whole elements.
void copy_part(std::span<const std::byte> elements, std::uint64_t first, const format::tensor_slice& slice, const tensor_shape& whole,
               std::size_t element_size, std::span<std::byte> into);

/// Returns true if the slices cover a tensor of shape `whole` exactly once. Subtracts the number of compared pairs of slices from
/// `comparisons`, and returns false when none are left.
[[nodiscard]] bool covers_once(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole, std::uint64_t& comparisons);

}  // namespace stepwell::detail
