// SPDX-License-Identifier: Apache-2.0
//
// Private to summary: opens a file of lines to go on with.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/detail/byte_sink.hpp"
#include "stepwell/io/file_system.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace stepwell::summary {

/// A file of lines, open at its end.
struct text_log {
  std::unique_ptr<io::byte_sink> sink;  ///< Holds the lock of the file while it lives.
  bool is_new = false;                  ///< Nothing is in it.
};

/// The file `path`, made with its directory where it is not there, else cut after its last whole line.
/// @errors `invalid_argument` where it does not begin with `beginning`; `failed_precondition` naming who holds it.
[[nodiscard]] result<text_log> open_text_log(io::file_system& files, const std::string& path, std::string_view beginning);

}  // namespace stepwell::summary
