// SPDX-License-Identifier: Apache-2.0
//
// Ready-made values of the usual kinds, in either style, as TensorFlow writes them.
#pragma once

#include "stepwell/format/events/detail/scalar_event.hpp"
#include "stepwell/format/events/summary.hpp"
#include "stepwell/kernel/histogram.hpp"

#include <cstdint>
#include <string>

namespace stepwell::format {

[[nodiscard]] summary_value make_scalar_value(std::string tag, float value, summary_style style);

/// The style follows from the histogram: TF1's is old style, TF2's is a tensor of [k, 3] doubles.
[[nodiscard]] summary_value make_histogram_value(std::string tag, const kernel::growing_histogram& histogram);
[[nodiscard]] summary_value make_histogram_value(std::string tag, const kernel::equal_histogram& histogram);

/// Markdown; a tensor in both styles (the old one has no text).
[[nodiscard]] summary_value make_text_value(std::string tag, std::string text);

/// One encoded picture (PNG). The old style's customary tag ends in "/image".
[[nodiscard]] summary_value make_image_value(std::string tag, std::int32_t width, std::int32_t height, int channels, std::string encoded,
                                             summary_style style);

}  // namespace stepwell::format
