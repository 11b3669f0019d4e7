// SPDX-License-Identifier: Apache-2.0
//
// The ending file in the directory of the checkpoints. It describes the end of the last session, and exists only between two sessions.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell::format {

inline constexpr std::string_view ending_file_name = "stepwell.ending";

/// The content of the ending file.
struct ending_file {
  std::string how;    ///< The name of a `session_ending`.
  std::string cause;  ///< The name of a `stop_cause`.
  std::string text;   ///< One sentence that describes the cause.
  std::int64_t global_step = 0;
};

/// Returns the content as text with one field per line.
[[nodiscard]] std::string encode(const ending_file& ending);

/// Returns the content in `text`. Unknown fields are ignored.
/// @errors `data_loss` if the text does not parse; the message has the line and the column.
[[nodiscard]] result<ending_file> decode_ending_file(std::string_view text);

}  // namespace stepwell::format
