// SPDX-License-Identifier: Apache-2.0
//
// Internal: the start offset of a tensor in a snapshot and in a data file. Large tensors begin at a page in both, so that the disk
// can take them from the snapshot without a copy.
#pragma once

#include "stepwell/io/file.hpp"

#include <cstdint>

namespace stepwell::detail {

/// Least size in bytes of a large tensor.
constexpr std::uint64_t big_tensor = std::uint64_t{1} << 20;

/// Returns the least offset, not below `offset`, for a tensor of `size` bytes. Small tensors are aligned to `alignment`, which is a
/// power of two and at most a page.
constexpr std::uint64_t tensor_start(std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) noexcept {
  const auto unit = size >= big_tensor ? std::uint64_t{io::page_size} : alignment;
  return (offset + unit - 1) / unit * unit;
}

}  // namespace stepwell::detail
