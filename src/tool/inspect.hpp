// SPDX-License-Identifier: Apache-2.0
//
// `stepwell inspect`: shows the contents of a checkpoint, or the differences between two.
#pragma once

#include "tool/console.hpp"

#include <cstdint>
#include <string>

namespace stepwell::tool {

/// Options of `stepwell inspect`.
struct inspect_options {
  std::string target;  ///< A prefix, or a directory, which stands for its newest checkpoint.
  bool stats = false;
  std::string print = {};      ///< Show the values of this tensor.
  std::string diff = {};       ///< Compare with this target.
  double tolerance = 0;        ///< Differences up to this value are ignored.
  std::uint64_t limit = 1000;  ///< Maximum number of values shown; 0: all.
  bool json = false;
};

/// Shows the tensors with shapes, dtypes, sizes and stored checksums, with `stats` also statistics of their values; or the values of one
/// tensor; or the differences between two checkpoints. Without `stats`, `print` and `diff` only the index is read.
/// @errors Those of reading.
/// @cost Memory for the index and one piece of a tensor. Tensors of strings and partitioned tensors are read as a whole.
[[nodiscard]] outcome inspect(const inspect_options& options, console& to);

/// Show the values of one tensor, and the differences between two checkpoints.
[[nodiscard]] outcome print_tensor(const inspect_options& options, const std::string& prefix, console& to);
[[nodiscard]] outcome diff_checkpoints(const inspect_options& options, const std::string& a, const std::string& b, console& to);

}  // namespace stepwell::tool
