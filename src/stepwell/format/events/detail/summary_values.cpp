// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/detail/summary_values.hpp"

#include <utility>

namespace stepwell::format {
namespace {

summary_value with_plugin(std::string tag, std::string plugin, tensor value) {
  return {std::move(tag), "", summary_metadata{std::move(plugin), "", "", "", data_class::unknown}, std::move(value)};
}

}  // namespace

summary_value make_scalar_value(std::string tag, float value, summary_style style) {
  if (style == summary_style::simple) { return {std::move(tag), "", std::nullopt, value}; }
  return with_plugin(std::move(tag), "scalars", tensor::scalar(value));
}

summary_value make_histogram_value(std::string tag, const kernel::growing_histogram& histogram) {
  const auto& stats = histogram.stats;
  histogram_value value{stats.min,        stats.max,       static_cast<double>(stats.count), stats.sum, stats.sum_squares,
                        histogram.limits, histogram.counts};
  return {std::move(tag), "", std::nullopt, std::move(value)};
}

summary_value make_histogram_value(std::string tag, const kernel::equal_histogram& histogram) {
  tensor rows(dtype::float64, {static_cast<std::int64_t>(histogram.buckets.size()), 3});
  auto at = rows.as<double>().begin();
  for (const auto& bucket : histogram.buckets) {
    for (const double number : {bucket.left, bucket.right, bucket.count}) { *at++ = number; }
  }
  return with_plugin(std::move(tag), "histograms", std::move(rows));
}

summary_value make_text_value(std::string tag, std::string text) {
  tensor value(dtype::string, {});
  value.strings()[0] = std::move(text);
  return with_plugin(std::move(tag), "text", std::move(value));
}

summary_value make_image_value(std::string tag, std::int32_t width, std::int32_t height, int channels, std::string encoded,
                               summary_style style) {
  if (style == summary_style::simple) {
    return {std::move(tag), "", std::nullopt, image_value{height, width, channels, std::move(encoded)}};
  }
  tensor value(dtype::string, {3});
  value.strings()[0] = std::to_string(width);
  value.strings()[1] = std::to_string(height);
  value.strings()[2] = std::move(encoded);
  return with_plugin(std::move(tag), "images", std::move(value));
}

}  // namespace stepwell::format
