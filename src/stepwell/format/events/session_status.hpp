// SPDX-License-Identifier: Apache-2.0
//
// The status changes of a run in an event file.
#pragma once

#include <cstdint>

namespace stepwell::format {

/// The status of a run. The values are those of TensorFlow's SessionLog and are stored in files.
enum class session_status : std::int32_t { unspecified = 0, start = 1, stop = 2, checkpoint = 3 };

}  // namespace stepwell::format
