// SPDX-License-Identifier: Apache-2.0
//
// Internal: the memory of one snapshot, with the layout of what was captured into it last.
#pragma once

#include "stepwell/checkpoint/snapshot.hpp"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace stepwell::detail {

struct snapshot_memory {
  struct deleter {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };

  /// Makes room for `bytes`, every page touched; what was there is lost.
  /// @errors `resource_exhausted_error`.
  void reserve(std::size_t wanted);

  std::unique_ptr<std::byte, deleter> bytes;
  std::size_t capacity = 0;
  std::vector<snapshot_entry> entries;  ///< Kept between captures: an unchanged model costs no allocation.
  std::size_t size_bytes = 0;
};

}  // namespace stepwell::detail
