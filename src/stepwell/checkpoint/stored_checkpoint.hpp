// SPDX-License-Identifier: Apache-2.0
//
// Internal: what the index of a checkpoint says, checked for sense, and the open data files behind it.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/format/bundle.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::detail {

/// One tensor: where its bytes are; for a partitioned one, where those of its parts are, in the order of its slices.
struct stored_tensor {
  checkpoint_entry entry;
  format::bundle_entry where;
  std::vector<format::bundle_entry> parts;
};

/// Everything an index says.
struct stored_index {
  format::bundle_header header;
  std::vector<stored_tensor> tensors;  ///< Sorted by name.
};

/// Whether a failure to read a checkpoint means that this one is no good while another one may be; else nobody can tell.
[[nodiscard]] bool is_damage(const error& failure) noexcept;

/// Reads, checks and orders the index of `prefix`; throws as `checkpoint_reader` promises.
[[nodiscard]] stored_index load_index(io::file_system& files, const std::string& prefix);

/// One open data file.
struct data_file {
  std::unique_ptr<io::file> file;
  std::uint64_t size = 0;
};

/// Opens all data files; throws `data_loss_error` for one that is missing.
[[nodiscard]] std::vector<data_file> open_data_files(io::file_system& files, const std::string& prefix, std::int32_t shards);

/// Throws `data_loss_error` for an entry outside its data file, or a partitioned tensor larger than all files.
/// `place` is the path of the index, for the message.
void check_places(const stored_index& index, const std::vector<data_file>& data, const std::string& place);

/// The sizes of a slice's part of a tensor.
[[nodiscard]] tensor_shape part_shape(const format::tensor_slice& slice, const tensor_shape& whole);

/// Copies a part, row-major, to where it belongs in the whole. @pre The slice lies inside.
void copy_part(std::span<const std::byte> part, const format::tensor_slice& slice, const tensor_shape& whole, std::size_t element_size,
               std::span<std::byte> into);

/// True when the slices cover a tensor of this shape exactly once.
[[nodiscard]] bool covers_once(const std::vector<format::tensor_slice>& slices, const tensor_shape& whole);

}  // namespace stepwell::detail
