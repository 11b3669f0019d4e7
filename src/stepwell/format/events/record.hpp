// SPDX-License-Identifier: Apache-2.0
//
// TFRecord framing: length, checksum of the length, data, checksum of the data. Pure bytes; files are elsewhere.
#pragma once

#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stepwell::format {

inline constexpr std::size_t record_header_size = 12;  ///< Before the data.
inline constexpr std::size_t record_footer_size = 4;   ///< After it.
inline constexpr std::size_t record_overhead = record_header_size + record_footer_size;

/// Greatest data a decoder believes in, unless told otherwise: 1 GiB. Protobuf itself stops at 2.
inline constexpr std::uint64_t default_record_limit = std::uint64_t{1} << 30;

/// Turns `frame` into one record, around data that already stands at `record_data(frame)`.
/// @pre `frame` has at least `record_overhead` bytes.
/// @cost One checksum of the data; nothing is moved.
void seal_record(std::span<std::byte> frame) noexcept;

/// Where the data of a frame stands. @pre `frame` has at least `record_overhead` bytes.
[[nodiscard]] inline std::span<std::byte> record_data(std::span<std::byte> frame) noexcept {
  return frame.subspan(record_header_size, frame.size() - record_overhead);
}

/// Appends one record of `data`.
void append_record(std::vector<std::byte>& out, std::span<const std::byte> data);

/// The first record of `bytes`: its data, which stands in `bytes`.
/// @errors `truncated`: `bytes` ends inside it (also: is empty). `data_loss`: a checksum does not match, or the length
///         is above `limit`; nothing after it can be found again, for there is no mark to look for.
/// @cost   One checksum. Never allocates, except for the message of an error.
[[nodiscard]] result<std::span<const std::byte>> read_record(std::span<const std::byte> bytes, std::uint64_t limit = default_record_limit);

/// Turns a byte stream into whole records. Knows nothing of files: feed it, then ask.
class record_decoder {
public:
  /// `position`: where in the stream the bytes begin that will be fed.
  explicit record_decoder(std::uint64_t limit = default_record_limit, std::uint64_t position = 0) : limit_(limit), position_(position) {}

  /// Appends to the stream. @cost One copy of `bytes`, and of what was fed and not yet handed out.
  void feed(std::span<const std::byte> bytes);

  /// The data of the next whole record, valid until the next `feed`.
  /// @errors `truncated`: feed more, or, if there is no more and `pending()` is 0, this was the end.
  ///         `data_loss`: stop reading this stream; it is said again at each further call.
  [[nodiscard]] result<std::span<const std::byte>> next();

  /// The length of the data of the next record; nothing until its header was fed, or if that is damaged.
  [[nodiscard]] std::optional<std::uint64_t> next_length() const;

  /// Bytes fed and not yet part of a record handed out. Above 0 at the end of a file: the last record is cut short.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size() - consumed_; }
  /// Where in the stream the next record begins, in bytes.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

private:
  std::uint64_t limit_;
  std::vector<std::byte> pending_;  // bytes fed
  std::size_t consumed_ = 0;        // of which already handed out; <= pending_.size()
  std::uint64_t position_;
};

}  // namespace stepwell::format
