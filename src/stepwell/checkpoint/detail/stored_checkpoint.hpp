// SPDX-License-Identifier: Apache-2.0
//
// Internal: facts about checkpoints on disk: which failures mean damage, where tensors begin, and the tensors that a saver adds.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::detail {

/// Returns true if a failure to read a checkpoint is specific to this checkpoint, so that another one may be readable.
[[nodiscard]] bool is_damage(const error& failure) noexcept;

/// Returns the failure to open a checkpoint that has no index.
[[nodiscard]] status no_index(io::file_system& files, const std::string& prefix);

/// Returns the number of data files according to the index of `prefix`, or nothing if the index cannot be read or is damaged.
[[nodiscard]] std::optional<std::int32_t> shards_in_index(io::file_system& files, const std::string& prefix);

/// Returns the least offset, not below `offset`, for a tensor of `size` bytes in a snapshot or a data file. Small tensors are aligned
/// to `alignment`, which is a power of two and at most a page. Large tensors begin at a page in both, so that the disk can take them
/// from the snapshot without a copy.
constexpr std::uint64_t tensor_start(std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) noexcept {
  constexpr std::uint64_t big_tensor = std::uint64_t{1} << 20;
  const auto unit = size >= big_tensor ? std::uint64_t{io::page_size} : alignment;
  return (offset + unit - 1) / unit * unit;
}

/// Name of the tensor that marks a checkpoint of a saver of this library, which retention may delete. Its value is the version of
/// this mark. The layout of a session's state has a separate version, `stepwell/version`.
inline constexpr std::string_view own_version_name = "stepwell/saver/version";

/// Name of the tensor with the number of the save. The first save in a directory has number 1. Each later save, by any process, has
/// a higher number.
inline constexpr std::string_view save_number_name = "stepwell/save_number";

/// Returns true if `name` is the name of a tensor that a saver adds for itself.
[[nodiscard]] constexpr bool is_saver_note(std::string_view name) noexcept {
  return name.starts_with("stepwell/saver/") || name == save_number_name;
}

}  // namespace stepwell::detail
