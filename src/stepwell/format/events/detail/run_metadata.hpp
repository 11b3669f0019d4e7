// SPDX-License-Identifier: Apache-2.0
//
// Spans as TensorFlow's RunMetadata: what an event file holds of them.
#pragma once

#include "stepwell/base/run_metadata.hpp"

#include <string>
#include <string_view>

namespace stepwell::format {

/// TensorFlow's name of the processor of this process.
inline constexpr std::string_view this_device = "/job:localhost/replica:0/task:0/device:CPU:0";

/// The bytes of a RunMetadata message: a node of `device` for each span, in their order, with times of day. Texts that
/// are not UTF-8 have their bad bytes replaced. The same spans always give the same bytes.
[[nodiscard]] std::string encode_run_metadata(const run_metadata& observed, std::string_view device = this_device);

}  // namespace stepwell::format
