// SPDX-License-Identifier: Apache-2.0
//
// Plain types for the content of event files: TensorFlow's messages Event and Summary, and hyperparameters. Functions that encode and
// decode an Event. Both styles of summaries are supported (see `summary_style`). In the style of TF1, each kind of value has its own type
// (`float`, `histogram_value`, `image_value`, `audio_value`). In the style of TF2, each value is a tensor with plugin metadata. Strings
// hold bytes. In strings that must be UTF-8 (tags, names, descriptions), the encoding functions replace invalid bytes by U+FFFD.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stepwell::format {

/// The style in which values are written. Viewers read both styles.
enum class summary_style {
  simple,  ///< TF1: `simple_value`, HistogramProto or Image, without metadata. Events of this style are the smallest.
  tensor,  ///< TF2: tensors with plugin metadata.
};

/// The kind of a tensor. With it, viewers can read a tensor without the plugin of its tag.
enum class data_class : std::int32_t { unknown = 0, scalar = 1, tensor = 2, blob_sequence = 3 };

/// Metadata of a tag: the plugin (dashboard) that shows it, and its description. Viewers use the metadata of the first value of a tag.
struct summary_metadata {
  std::string plugin_name;
  std::string plugin_content;  ///< Data for the plugin, in a format that the plugin defines. Often empty.
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

/// A TF1 histogram. `buckets[i]` counts the values v with `bucket_limits[i - 1]` <= v < `bucket_limits[i]`.
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

/// One value of one tag. If the member `value` is `std::monostate`, this object has metadata only.
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

/// The status of a run. The values are those of TensorFlow's SessionLog and are stored in files.
enum class session_status : std::int32_t { unspecified = 0, start = 1, stop = 2, checkpoint = 3 };

/// The version of the file format that the first record of each event file contains.
inline constexpr std::string_view event_file_version = "brain.Event:2";

/// The value of the first event in a file: the version of the file format.
struct file_version {
  std::string text;
};

/// A serialized GraphDef.
struct graph_def {
  std::string bytes;
};

/// A serialized MetaGraphDef.
struct meta_graph_def {
  std::string bytes;
};

/// A serialized RunMetadata, for the graph dashboard.
struct tagged_run_metadata {
  std::string tag;
  std::string run_metadata;
};

/// A change of a run's status. If a directory already has a `start`, another `start` with the step N makes viewers discard earlier events:
/// those with the step N or a later step.
struct session_log {
  session_status status = session_status::unspecified;
  std::string checkpoint_path;
  std::string message;
};

/// A log message. Deprecated: viewers ignore it. The levels are those of TensorFlow, from 10 (debugging) to 50 (fatal).
struct log_message {
  std::int32_t level = 0;
  std::string message;
};

/// One event: a time, a step, and at most one value in the member `what`.
struct event {
  double wall_time = 0;  ///< Time of day in seconds since 1970.
  std::int64_t step = 0;
  std::variant<std::monostate, file_version, graph_def, summary, log_message, session_log, tagged_run_metadata, meta_graph_def> what;
  std::string source_writer;  ///< Name of the library that wrote the file. Set in the first record only.
};

/// Returns the serialized Event message. Fields have ascending numbers, and default values are omitted. Numeric tensors are written as raw
/// `tensor_content`.
[[nodiscard]] std::string encode_event(const event& happened);

/// Returns the event in a serialized Event message. Unknown fields are ignored.
/// @errors `data_loss` if the bytes are not an Event, or if the shape of a tensor does not match its content; the error then names the tag.
///         A tensor in compact form stores one value for all elements. `data_loss` if all such tensors together need more than 8 MiB when
///         expanded.
/// @cost   Memory in proportion to the size of `bytes`, and at most 8 MiB for the repeated values of tensors.
[[nodiscard]] result<event> decode_event(std::span<const std::byte> bytes);

/// The value of one hyperparameter: a number, a string or a boolean.
class hparam_value {
public:
  hparam_value(bool value) : value_(value) {}
  template<class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool>)
  hparam_value(Number value) : value_(static_cast<double>(value)) {}
  hparam_value(std::string value) : value_(std::move(value)) {}
  hparam_value(std::string_view value) : value_(std::string(value)) {}
  hparam_value(const char* value) : value_(std::string(value)) {}

  [[nodiscard]] const std::variant<double, std::string, bool>& get() const noexcept { return value_; }
  friend bool operator==(const hparam_value&, const hparam_value&) = default;

private:
  std::variant<double, std::string, bool> value_;
};

/// Hyperparameters by name.
using hparam_map = std::map<std::string, hparam_value>;

/// The status of a run that has hyperparameters. The values are those of TensorBoard and are stored in files.
enum class hparams_status : std::int32_t { unknown = 0, success = 1, failure = 2, running = 3 };

}  // namespace stepwell::format
