// SPDX-License-Identifier: Apache-2.0
//
// `stepwell export`: a checkpoint as a file that NumPy loads.
#pragma once

#include "tool/console.hpp"

#include <string>
#include <vector>

namespace stepwell::tool {

struct export_options {
  std::string target;                     ///< A prefix, or a directory: its newest.
  std::string npz;                        ///< The file to write; one that is there is replaced once the new one is whole.
  std::vector<std::string> tensors = {};  ///< Only these; none: all.
  bool json = false;
};

/// Writes each tensor as an array of its name. bfloat16, which NumPy does not know, becomes float32, which holds each of its
/// values; quantised integers become plain ones; strings become fixed-width bytes ("S"). What has no array that gives it
/// back (variants, strings that end in a zero byte, TensorFlow's object graph) is left out, and said.
/// @errors `data_loss_error` naming the damaged tensor: then nothing is written; those of the disk.
/// @cost   Reads every tensor twice, a piece at a time; a whole tensor of strings, or in slices.
[[nodiscard]] outcome export_npz(const export_options& options, console& to);

}  // namespace stepwell::tool
