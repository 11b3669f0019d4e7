// SPDX-License-Identifier: Apache-2.0
//
// Internal: where a tensor begins, in a snapshot and in a data file. Big ones begin at a page in both, so that the disk
// takes them from the snapshot as they are.
#pragma once

#include "stepwell/io/file.hpp"

#include <cstdint>

namespace stepwell::detail {

constexpr std::uint64_t big_tensor = std::uint64_t{1} << 20;

/// The least offset from `offset` on for a tensor of `size` bytes; small ones are aligned to `alignment`, a power of two
/// not above a page.
constexpr std::uint64_t tensor_start(std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) noexcept {
  const auto unit = size >= big_tensor ? std::uint64_t{io::page_size} : alignment;
  return (offset + unit - 1) / unit * unit;
}

}  // namespace stepwell::detail
