// SPDX-License-Identifier: Apache-2.0
//
// Private to summary: opens a text file to append lines.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/detail/byte_sink.hpp"
#include "stepwell/io/file_system.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace stepwell::summary {

/// A text file, open at its end.
struct text_log {
  std::unique_ptr<io::byte_sink> sink;  ///< Holds the lock of the file.
  bool is_new = false;                  ///< True if the file is empty.
};

/// Opens the file `path`, and creates it with its directory if necessary. Removes an incomplete line at its end.
/// @errors `invalid_argument` if it does not begin with `beginning`. `data_loss` if its last 64 MiB contain no end of a line.
///         `failed_precondition` naming the holder of its lock.
[[nodiscard]] result<text_log> open_text_log(io::file_system& files, const std::string& path, std::string_view beginning);

}  // namespace stepwell::summary
