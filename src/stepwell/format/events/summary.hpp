// SPDX-License-Identifier: Apache-2.0
//
// What a viewer draws: TensorFlow's Summary as plain values. Both styles: the old one, where the kind follows from the
// value (`float`, `histogram_value`, `image_value`, `audio_value`), and the new one, a tensor with plugin metadata.
// Strings hold bytes; what must be UTF-8 (tags, names, descriptions) is mended when it is encoded.
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

/// What a value's tensor is to viewers that do not know its plugin.
enum class data_class : std::int32_t { unknown = 0, scalar = 1, tensor = 2, blob_sequence = 3 };

/// Which dashboard shows a tag, and how. Viewers keep that of the first value of a tag.
struct summary_metadata {
  std::string plugin_name;
  std::string plugin_content;  ///< Bytes the plugin understands; often empty.
  std::string display_name;
  std::string description;  ///< Markdown.
  format::data_class data_class = format::data_class::unknown;
};

/// An encoded picture (PNG, JPEG, GIF).
struct image_value {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t colorspace = 0;  ///< Channels: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA.
  std::string encoded;
};

/// An encoded sound.
struct audio_value {
  float sample_rate = 0;  ///< Frames a second.
  std::int64_t num_channels = 0;
  std::int64_t length_frames = 0;
  std::string encoded;
  std::string content_type;  ///< "audio/wav".
};

/// TF1's histogram; `buckets[i]` counts the values below `bucket_limits[i]` and not below the limit before.
struct histogram_value {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limits;
  std::vector<double> buckets;
};

/// A TensorProto that `tensor` cannot hold (variants, handles, 4- and 8-bit floats), as its serialized bytes.
struct opaque_tensor {
  std::string bytes;
};

/// A histogram older than any TF release; nobody reads it.
struct obsolete_histogram {
  std::string bytes;
};

/// One value of one tag. Without a value (monostate) it carries metadata only.
struct summary_value {
  std::string tag;
  std::string node_name;
  std::optional<summary_metadata> metadata;
  std::variant<std::monostate, float, histogram_value, image_value, audio_value, tensor, opaque_tensor, obsolete_histogram> value;
};

struct summary {
  std::vector<summary_value> values;
};

/// The bytes of a Summary message: ascending field numbers, defaults left out; tensors hold raw `tensor_content`.
[[nodiscard]] std::string encode_summary(const summary& values);

/// The other way; fields nobody knows are passed over.
/// @errors `data_loss`: not a Summary, or a tensor whose shape and content do not agree; the message names the tag.
/// @cost   Memory in proportion to `bytes`, except for a tensor that says "this value everywhere" (at most 256 MiB).
[[nodiscard]] result<summary> decode_summary(std::span<const std::byte> bytes);

}  // namespace stepwell::format
