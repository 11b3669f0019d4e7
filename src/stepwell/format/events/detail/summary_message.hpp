// SPDX-License-Identifier: Apache-2.0
//
// Private to format: conversion between `summary` and the Summary message.
#pragma once

#include "stepwell/format/events/summary.hpp"

namespace tensorflow {
class Summary;
}

namespace stepwell::format {

/// Returns the summary in `message`. @errors `data_loss`, as `decode_summary`.
[[nodiscard]] result<summary> read_summary(const tensorflow::Summary& message);
/// Appends all values to `message`.
void write_summary(const summary& values, tensorflow::Summary& message);

}  // namespace stepwell::format
