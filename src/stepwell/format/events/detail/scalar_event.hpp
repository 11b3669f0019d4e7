// SPDX-License-Identifier: Apache-2.0
//
// A fast encoder for the most frequent event: one number of one tag, written directly into the caller's buffer.
// Its output is identical to that of `encode_event` for the same event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepwell::format {

/// The style in which values are written. Viewers read both styles.
enum class summary_style {
  simple,  ///< TF1: `simple_value`, HistogramProto, Image, without metadata. The smallest.
  tensor,  ///< TF2: tensors with plugin metadata.
};

/// One number of one tag.
struct scalar_event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string_view tag;
  float value = 0;
};

/// An encoder for one scalar event. The constructor computes the size of the message, so the caller can provide a buffer of that size.
/// @lifetime The tag is not copied, and must outlive the encoder.
class scalar_encoder {
public:
  /// Computes the layout. `with_metadata` adds the name of the plugin, in the tensor style only. The first value of a tag must have it.
  scalar_encoder(const scalar_event& happened, summary_style style, bool with_metadata) noexcept;

  /// Returns the size of the Event message in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Writes the Event message to `out`. @pre `out.size() == size()`.
  void write(std::span<std::byte> out) const noexcept;

private:
  scalar_event event_;
  summary_style style_;
  bool with_metadata_;
  std::size_t value_size_;    // size of the Summary.Value message
  std::size_t summary_size_;  // size of the Summary message, which contains the Summary.Value
  std::size_t size_;          // size of the Event message, which contains the Summary
};

}  // namespace stepwell::format
