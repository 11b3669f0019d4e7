// SPDX-License-Identifier: Apache-2.0
//
// Internal: the header of an .npy file of NumPy, versions 1 to 3: the magic number, the version, the length, and a literal of Python.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/format/weights/detail/stored_array.hpp"

#include <cstddef>
#include <string_view>

namespace stepwell::format {

inline constexpr std::string_view npy_magic = "\x93NUMPY";
inline constexpr std::size_t npy_prefix_size = 12;  ///< Bytes that contain the length of the header in each version.
inline constexpr std::size_t max_npy_header =
    std::size_t{1} << 20;  ///< In bytes, with the prefix. NumPy writes fewer than 200 per array, and reads 10,000.

/// Returns the size of the header with its prefix.
/// @errors `truncated` if `beginning` is shorter than the prefix. `data_loss` if it is no .npy file. `unimplemented` if the version is
///         unknown, or the header has more than `max_npy_header` bytes.
[[nodiscard]] result<std::size_t> npy_header_size(std::string_view beginning);

/// Returns the array without a name. Its offset is the size of the header. `stored_array::unsupported` is set for pickled objects, structures,
/// texts, times, and numbers without a counterpart in this library. It names them.
/// @pre    `header` has the size that `npy_header_size` returned.
/// @errors `data_loss` if the header has another form.
[[nodiscard]] result<stored_array> decode_npy_header(std::string_view header);

}  // namespace stepwell::format
