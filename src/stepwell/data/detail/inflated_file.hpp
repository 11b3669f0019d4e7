// SPDX-License-Identifier: Apache-2.0
//
// Reads compressed TFRecord files as if they were not compressed.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"

#include <memory>

namespace stepwell::data::detail {

/// Returns `file` if it is not compressed. Returns a file with the decompressed content if `file` begins with a header of gzip or zlib, and
/// not with a header of a record. A file of several gzip streams, one after the other, has the content of all of them.
/// Only `read_at` and `size` of the result may be called. `read_at` at the end of the previous read continues; at an earlier offset it
/// decompresses the file again from the beginning. `size` decompresses the whole file.
/// @errors Those of reading. Later reads return `data_loss` if the compressed data are damaged or incomplete.
/// @cost   64 KiB of memory, in addition to that of zlib.
[[nodiscard]] result<std::unique_ptr<io::file>> inflate_if_compressed(std::unique_ptr<io::file> file);

}  // namespace stepwell::data::detail
