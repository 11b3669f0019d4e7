// SPDX-License-Identifier: Apache-2.0
//
// Internal: reads many tensors of a checkpoint in the order of their bytes, into their places or only to check them.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stepwell::io {
class pool;
}

namespace stepwell::detail {

/// Location of the bytes of a tensor or of one of its slices.
struct stored_place {
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::int32_t shard = 0;
  std::uint32_t crc32c = 0;  ///< Masked.
};

/// The fixed-size elements to read from one place.
struct tensor_read {
  const checkpoint_entry* entry = nullptr;
  stored_place where;
  std::byte* into = nullptr;  ///< Memory for all bytes. Null if they are only to be checked.
};

/// The data files of a checkpoint.
struct tensor_files {
  std::vector<io::file*> shards;
  bool is_swapped = false;  ///< The byte order of the numbers is not that of this machine.
};

/// Size in bytes from which a tensor is read directly into its place. Smaller ones are read together.
inline constexpr std::size_t separate_read = std::size_t{64} << 10;

/// Throws `data_loss_error` for the tensor `name` at `where`.
[[noreturn]] void throw_damaged(const stored_place& where, const io::file& shard, std::string_view name, std::string_view what);
/// Throws `data_loss_error` if `crc` is not the stored checksum.
void check_sum(const stored_place& where, const io::file& shard, std::string_view name, std::uint32_t crc);
/// Throws `data_loss_error` if `bytes` are booleans that are neither 0 nor 1.
void check_booleans(const stored_place& where, const io::file& shard, std::string_view name, dtype type, std::span<const std::byte> bytes);
/// Reverses the bytes of each number. A complex value consists of two numbers.
void swap_numbers(std::span<std::byte> bytes, dtype type);

/// Reads all tensors and compares their checksums. The idle threads of `helpers` take part if there is much to read; null: none.
/// While one thread computes a checksum, another one reads. The disk reads ahead of both. Tensors of 1 MiB or more that are not in the
/// cache of the system are read without it, so that the system need not provide cache memory for them first.
/// @pre    Tensors that are only checked are smaller than `separate_read`.
/// @errors `data_loss_error`, of the first damaged tensor in the order of the file that was found. Failures of the file system. The memory
///         of all tensors is then unspecified. `std::bad_alloc`.
/// @cost   At most 3 MiB for each thread, and a few bytes for each tensor.
void read_tensors(std::vector<tensor_read> reads, const tensor_files& files, io::pool* helpers);

}  // namespace stepwell::detail
