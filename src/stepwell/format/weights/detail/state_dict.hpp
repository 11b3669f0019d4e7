// SPDX-License-Identifier: Apache-2.0
//
// Internal: the pickle of a file that `torch.save` wrote, in Python or in LibTorch. No function of Python is called: the few global names that
// dictionaries of tensors need have a fixed meaning. The objects of all other ones are opaque.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/format/weights/detail/stored_array.hpp"

#include <cstddef>
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
  /// True for an object with tensors that is not executed. It has no storage, and `stored_array::unsupported` names it.
  bool is_foreign = false;
};

/// Returns all tensors below dictionaries, lists, tuples and sets, also nested ones, with a dot between the keys: "model.conv1.weight".
/// Also below the objects of TorchScript, which LibTorch writes. A single tensor has the name "tensor"; a name can be there twice. Numbers,
/// texts and objects without tensors are skipped. Each protocol of Python (0 to 5) is read. The shapes and strides are not negative, and all
/// sizes fit into signed 64-bit numbers. Elements can share memory, so a size is not limited by that of the storage.
/// @errors `data_loss` if the pickle is damaged. `unimplemented` if all tensors are in foreign objects, or there are none, but foreign objects;
///         or if the pickle refers to the same objects so often that its tensors need much more memory than the pickle.
/// @cost   Memory for at most 256 times the size of the pickle, and 16 MiB.
[[nodiscard]] result<std::vector<pickled_tensor>> decode_state_dict(std::string_view pickle);

/// The beginning of a file that PyTorch wrote before version 1.6, or with `_use_new_zipfile_serialization=False`. The storages follow: for
/// each one, its number of elements (8 bytes, little-endian) and the elements.
struct old_torch_file {
  struct storage {
    std::string key;
    std::size_t width;  ///< Bytes of an element.
  };
  std::vector<pickled_tensor> tensors;
  std::vector<storage> storages;  ///< In the order of the file.
  std::size_t size = 0;           ///< Bytes before the storages.
};

inline constexpr std::size_t old_torch_magic_size = 32;  ///< Bytes that `is_old_torch_file` needs.
[[nodiscard]] bool is_old_torch_file(std::string_view beginning) noexcept;

/// @errors `truncated` if `beginning` ends before the storages. The errors of `decode_state_dict`.
[[nodiscard]] result<old_torch_file> decode_old_torch_file(std::string_view beginning);

}  // namespace stepwell::format
