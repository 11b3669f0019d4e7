// SPDX-License-Identifier: Apache-2.0
//
// Internal: the memory of one snapshot, and the layout of the last capture into it.
#pragma once

#include "stepwell/checkpoint/snapshot.hpp"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace stepwell::detail {

/// A buffer for the bytes of a snapshot.
struct snapshot_memory {
  struct deleter {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };

  /// Allocates at least `wanted` bytes and touches every page. Does nothing if the buffer is large enough. Otherwise the previous
  /// content is lost.
  /// @errors `resource_exhausted_error`.
  void reserve(std::size_t wanted);

  std::unique_ptr<std::byte, deleter> bytes;
  std::size_t capacity = 0;
  std::vector<snapshot_entry> entries;  ///< Kept between captures, so that an unchanged model needs no allocation.
  std::size_t size_bytes = 0;
};

}  // namespace stepwell::detail
