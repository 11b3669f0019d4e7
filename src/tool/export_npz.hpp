// SPDX-License-Identifier: Apache-2.0
//
// `stepwell export`: writes a checkpoint to a file that NumPy can load.
#pragma once

#include "tool/console.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

/// Options of `stepwell export`.
struct export_options {
  std::string target;                     ///< A prefix, or a directory, which stands for its newest checkpoint.
  std::string npz;                        ///< The output file. An existing file is replaced when the new one is complete.
  std::vector<std::string> tensors = {};  ///< Export only these tensors; empty: all.
  bool json = false;
};

/// Writes each tensor as an array with the same name. bfloat16, which NumPy lacks, is converted to float32 without loss. Quantised integers
/// become plain integers. float8, int4 and similar types become uint8 with the stored bytes. Strings become fixed-width bytes ("S"). A
/// tensor without an equivalent array is skipped, and reported: variants, strings that end in a zero byte, strings that would need too much
/// memory at a fixed width, and TensorFlow's object graph.
/// @errors `data_loss_error` that names the damaged tensor; nothing is written in this case. Those of the file system.
/// @cost   Reads every tensor twice, piece by piece. Tensors of strings and partitioned tensors are read as a whole.
[[nodiscard]] outcome export_npz(const export_options& options, console& to);

}  // namespace stepwell::tool
