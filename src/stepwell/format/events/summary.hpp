// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's Summary as plain values, and its encoding. Both styles are supported. In the old style the type of the value says its kind
// (`float`, `histogram_value`, `image_value`, `audio_value`). In the new style a value is a tensor with plugin metadata.
// Strings hold bytes. Encoding replaces invalid UTF-8 bytes by U+FFFD in strings that must be UTF-8 (tags, names, descriptions).
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/base/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace stepwell::format {

/// The kind of a tensor, for viewers without its plugin.
enum class data_class : std::int32_t { unknown = 0, scalar = 1, tensor = 2, blob_sequence = 3 };

/// Metadata of a tag: the plugin (dashboard) that shows it, and its description. Viewers use the metadata of the first value of a tag.
struct summary_metadata {
  std::string plugin_name;
  std::string plugin_content;  ///< Data for the plugin, in a format of the plugin. Often empty.
  std::string display_name;
  std::string description;  ///< Markdown.
  format::data_class data_class = format::data_class::unknown;
};

/// An encoded image (PNG, JPEG, GIF).
struct image_value {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t colorspace = 0;  ///< Number of channels: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA.
  std::string encoded;
};

/// An encoded audio clip.
struct audio_value {
  float sample_rate = 0;  ///< Frames per second.
  std::int64_t num_channels = 0;
  std::int64_t length_frames = 0;
  std::string encoded;
  std::string content_type;  ///< MIME type, such as "audio/wav".
};

/// A TF1 histogram. `buckets[i]` counts the values below `bucket_limits[i]` that are not below the previous limit.
struct histogram_value {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limits;
  std::vector<double> buckets;
};

/// A serialized TensorProto of a type that `tensor` cannot hold: variants, resource handles, and unknown types.
struct opaque_tensor {
  std::string bytes;
};

/// A histogram in a format older than the first TensorFlow release. Viewers ignore it.
struct obsolete_histogram {
  std::string bytes;
};

/// One value of one tag. If the value is `std::monostate`, it has metadata only.
struct summary_value {
  std::string tag;
  std::string node_name;
  std::optional<summary_metadata> metadata;
  std::variant<std::monostate, float, histogram_value, image_value, audio_value, tensor, opaque_tensor, obsolete_histogram> value;
};

/// The values of one Summary message.
struct summary {
  std::vector<summary_value> values;
};

/// Returns the serialized Summary message. Fields have ascending numbers, and default values are omitted. Numeric tensors are written as
/// raw `tensor_content`.
[[nodiscard]] std::string encode_summary(const summary& values);

/// Returns the summary in a serialized Summary message. Unknown fields are ignored.
/// @errors `data_loss` if the bytes are not a Summary, if the shape and the content of a tensor disagree (the error names the tag), or if
///         the tensors with repeated values expand by more than 8 MiB in total.
/// @cost   Memory in proportion to `bytes`, except for tensors that store a repeated value once.
[[nodiscard]] result<summary> decode_summary(std::span<const std::byte> bytes);

}  // namespace stepwell::format
