// SPDX-License-Identifier: Apache-2.0
//
// Internal: what the index of a checkpoint says, checked for sense, and the open data files behind it.
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

/// Where the bytes of a tensor, or of one of its slices, are.
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

/// Everything an index says.
struct stored_index {
  format::bundle_header header;
  std::vector<checkpoint_entry> entries;                    ///< Sorted by name.
  std::vector<stored_place> places;                         ///< Of each entry; without meaning for a partitioned one.
  std::map<std::size_t, std::vector<stored_slice>> slices;  ///< Of each partitioned entry, by its position in `entries`.
};

/// Whether a failure to read a checkpoint means that this one is no good while another one may be; else nobody can tell.
[[nodiscard]] bool is_damage(const error& failure) noexcept;

/// Reads, checks and orders the index of `prefix`; throws as `checkpoint_reader` promises.
/// @cost Memory: at most 4 times the size of the index file and 60 MiB. An index that asks for more is damaged.
[[nodiscard]] stored_index load_index(io::file_system& files, const std::string& prefix);

/// One open data file.
struct data_file {
  std::unique_ptr<io::file> file;
  std::uint64_t size = 0;
};

/// Opens all data files; throws `data_loss_error` for one that is missing.
[[nodiscard]] std::vector<data_file> open_data_files(io::file_system& files, const std::string& prefix, std::int32_t shards);

/// Throws `data_loss_error` for an entry outside its data file, and for two that share bytes: each byte of a data file is read
/// once at most. `place` is the path of the index, for the message.
void check_places(const stored_index& index, const std::vector<data_file>& data, const std::string& place);

/// The sizes of a slice's part of a tensor.
[[nodiscard]] tensor_shape part_shape(const format::tensor_slice& slice, const tensor_shape& whole);

/// Copies some elements of a slice, row-major, beginning with the element number `first` of the slice, to where they belong in
/// the whole. @pre The slice lies inside; `elements` are whole elements.
void copy_part(std::span<const std::byte> elements, std::uint64_t first, const format::tensor_slice& slice, const tensor_shape& whole,
               std::size_t element_size, std::span<std::byte> into);

/// True when the slices cover a tensor of this shape exactly once. Takes from `comparisons` how many pairs of slices it compared;
/// false once there are none left.
[[nodiscard]] bool covers_once(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole, std::uint64_t& comparisons);

}  // namespace stepwell::detail
