// SPDX-License-Identifier: Apache-2.0
//
// Creation of summary values of the usual kinds, in both styles, as TensorFlow writes them, and of the data for TensorBoard's
// hyperparameter dashboard. An event with one number, by far the most frequent event, is written directly into the caller's buffer; the
// bytes are identical to those of `encode_event` for the same event.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

/// The start of a trial. Written at the start of its run.
struct hparams_start {
  hparam_map hparams;
  std::string group_name;  ///< Trials of one group are shown as one row. A trial without a group has its own row.
  double start_time_secs = 0;
};

/// The end of a trial. Written at the end of its run.
struct hparams_end {
  hparams_status status = hparams_status::unknown;
  double end_time_secs = 0;
};

/// The description of an experiment with many trials. It is optional, and stepwell does not write it.
struct hparams_experiment {
  std::vector<std::string> hparams;  ///< Names of the hyperparameters.
  std::vector<std::string> metrics;  ///< Tags of the metrics.
};

/// One record for the dashboard.
using hparams_record = std::variant<hparams_experiment, hparams_start, hparams_end>;

/// Returns the record in a serialized HParamsPluginData. Hyperparameters of types other than number, string and boolean are ignored.
/// @errors `data_loss` if the bytes are not an HParamsPluginData, or if it is empty.
[[nodiscard]] result<hparams_record> decode_hparams(std::span<const std::byte> bytes);

/// Returns the summary value for a record, with its tag, its metadata and an empty tensor. Write it at step 0. Equal records give equal
/// values.
[[nodiscard]] summary_value make_hparams_value(const hparams_start& record);
[[nodiscard]] summary_value make_hparams_value(const hparams_end& record);

/// One number of one tag.
struct scalar_event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string_view tag;
  float value = 0;
};

/// Reads an Event whose values are scalars of the simple style, and appends them to `scalars`. Returns false and appends nothing if it is
/// another Event, not an Event at all, larger than 256 KiB, or in a form that this library does not write. `decode_event` reads all of them.
/// @lifetime The tags refer to `bytes`.
[[nodiscard]] bool decode_scalars(std::span<const std::byte> bytes, std::vector<scalar_event>& scalars);

/// An encoder for one scalar event. The constructor computes the size of the message, so the caller can provide a buffer of that size.
/// @lifetime The event is not copied, and must outlive the encoder.
class scalar_encoder {
public:
  /// Computes the layout. `with_metadata` adds the name of the plugin, in the tensor style only. The first value of a tag must have it.
  scalar_encoder(const scalar_event& happened, summary_style style, bool with_metadata) noexcept;

  /// Returns the size of the Event message in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Writes the Event message to `out`. @pre `out.size() == size()`.
  void write(std::span<std::byte> out) const noexcept;

private:
  const scalar_event& event_;  // a copy would have to wait for the stores of the members
  summary_style style_;
  bool with_metadata_;
  std::size_t value_size_;    // size of the Summary.Value message
  std::size_t summary_size_;  // size of the Summary message, which contains the Summary.Value
  std::size_t size_;          // size of the Event message, which contains the Summary
};

}  // namespace stepwell::format
