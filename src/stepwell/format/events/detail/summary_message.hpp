// SPDX-License-Identifier: Apache-2.0
//
// Private to format: summaries in and out of the Summary message.
#pragma once

#include "stepwell/format/events/summary.hpp"

namespace tensorflow {
class Summary;
}

namespace stepwell::format {

[[nodiscard]] result<summary> read_summary(const tensorflow::Summary& message);
void write_summary(const summary& values, tensorflow::Summary& message);

}  // namespace stepwell::format
