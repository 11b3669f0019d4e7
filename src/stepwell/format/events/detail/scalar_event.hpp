// SPDX-License-Identifier: Apache-2.0
//
// The fast way for the commonest event: one number of one tag, written straight into the caller's buffer.
// Byte for byte what `encode_event` makes of the same event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepwell::format {

/// How values are written. Viewers read both.
enum class summary_style {
  simple,  ///< TF1: `simple_value`, HistogramProto, Image; no metadata, the smallest.
  tensor,  ///< TF2: tensors with plugin metadata.
};

/// One number of one tag.
struct scalar_event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string_view tag;
  float value = 0;
};

/// Lays the message out once, so that its size is known before it is written.
/// @lifetime The tag is not copied.
class scalar_encoder {
public:
  /// `with_metadata`: name the plugin (tensor style only); the first value of a tag must.
  scalar_encoder(const scalar_event& happened, summary_style style, bool with_metadata) noexcept;

  /// Bytes of the Event message.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// @pre `out.size() == size()`.
  void write(std::span<std::byte> out) const noexcept;

private:
  scalar_event event_;
  summary_style style_;
  bool with_metadata_;
  std::size_t value_size_;    // of the Summary.Value message
  std::size_t summary_size_;  // of the Summary message around it
  std::size_t size_;          // of the Event message around that
};

}  // namespace stepwell::format
