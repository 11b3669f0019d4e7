// SPDX-License-Identifier: Apache-2.0
//
// Internal: the pickle of a file that `torch.save` wrote. Reads the part of Python's pickle that dictionaries of tensors need. No function of
// Python is called: the few global names that are allowed have a fixed meaning, and all others are errors.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/format/weights/detail/stored_array.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// A tensor of a pickle. `stored_array::part` is unset.
struct pickled_tensor {
  stored_array array;
  std::string storage;    ///< Key of the storage with the elements: the member "data/KEY" of the archive.
  std::uint64_t end = 0;  ///< End of the last element in the storage, in bytes. 0 if there are no elements.
};

/// Returns all tensors below dictionaries, lists and tuples, also nested ones, with a dot between the keys: "model.conv1.weight". Numbers,
/// texts and other plain values are skipped. A single tensor has the name "tensor". The shapes and strides are not negative, and all sizes
/// fit into signed 64-bit numbers.
/// @errors `unimplemented` that names a global or an opcode outside of the allowed part, such as the class of a module. `data_loss` if the
///         pickle is damaged, or would need more memory than a pickle of its size can need.
/// @cost   Memory for at most 32 times the size of the pickle, and 1 MiB.
[[nodiscard]] result<std::vector<pickled_tensor>> decode_state_dict(std::string_view pickle);

}  // namespace stepwell::format
