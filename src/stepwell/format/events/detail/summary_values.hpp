// SPDX-License-Identifier: Apache-2.0
//
// Creation of summary values of the usual kinds, in both styles, as TensorFlow writes them.
#pragma once

#include "stepwell/format/events/detail/scalar_event.hpp"
#include "stepwell/format/events/summary.hpp"
#include "stepwell/kernel/histogram.hpp"

#include <cstdint>
#include <string>

namespace stepwell::format {

/// Returns a value with one number.
[[nodiscard]] summary_value make_scalar_value(std::string tag, float value, summary_style style);

/// Returns a value with a histogram. The type of the histogram determines the style: a TF1 histogram gives a value in the old style, a TF2
/// histogram gives a tensor of [k, 3] doubles.
[[nodiscard]] summary_value make_histogram_value(std::string tag, const kernel::growing_histogram& histogram);
[[nodiscard]] summary_value make_histogram_value(std::string tag, const kernel::equal_histogram& histogram);

/// Returns a value with Markdown text. It is a tensor, because the old style has no text.
[[nodiscard]] summary_value make_text_value(std::string tag, std::string text);

/// Returns a value with one encoded image (PNG). By convention a tag in the old style ends with "/image".
[[nodiscard]] summary_value make_image_value(std::string tag, std::int32_t width, std::int32_t height, int channels, std::string encoded,
                                             summary_style style);

}  // namespace stepwell::format
