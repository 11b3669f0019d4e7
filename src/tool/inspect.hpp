// SPDX-License-Identifier: Apache-2.0
//
// `stepwell inspect`: what is in a checkpoint, and how two of them differ.
#pragma once

#include "tool/console.hpp"

#include <cstdint>
#include <string>

namespace stepwell::tool {

struct inspect_options {
  std::string target;  ///< A prefix, or a directory: its newest.
  bool stats = false;
  std::string print = {};      ///< A tensor whose values to show.
  std::string diff = {};       ///< Another target to compare with.
  double tolerance = 0;        ///< Differences up to here do not count.
  std::uint64_t limit = 1000;  ///< Values shown at most; 0: all.
  bool json = false;
};

/// Tensors with shapes, dtypes, sizes and stored checksums; with `stats`, their values summed up; or the values of one
/// tensor; or the differences of two checkpoints. Without `stats`, `print` and `diff` only the index is read.
/// @errors Those of reading. @cost Memory for the index and a piece of a tensor; a whole tensor of strings, or in slices.
[[nodiscard]] outcome inspect(const inspect_options& options, console& to);

/// The parts.
[[nodiscard]] outcome print_tensor(const inspect_options& options, const std::string& prefix, console& to);
[[nodiscard]] outcome diff_checkpoints(const inspect_options& options, const std::string& a, const std::string& b, console& to);

}  // namespace stepwell::tool
