// SPDX-License-Identifier: Apache-2.0
//
// Encoding of spans as TensorFlow's RunMetadata, for event files.
#pragma once

#include "stepwell/base/run_metadata.hpp"

#include <string>
#include <string_view>

namespace stepwell::format {

/// TensorFlow's name of the CPU of this process.
inline constexpr std::string_view this_device = "/job:localhost/replica:0/task:0/device:CPU:0";

/// Returns a serialized RunMetadata message. It has one node of `device` for each span, in the order of `observed`, with times of day.
/// Invalid UTF-8 bytes are replaced by U+FFFD. Equal spans give equal bytes.
[[nodiscard]] std::string encode_run_metadata(const run_metadata& observed, std::string_view device = this_device);

}  // namespace stepwell::format
