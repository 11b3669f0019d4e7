// SPDX-License-Identifier: Apache-2.0
//
// TFRecord framing: length, checksum of the length, data, checksum of the data. Works on bytes in memory and does no I/O.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stepwell::format {

inline constexpr std::size_t record_header_size = 12;  ///< Bytes before the data.
inline constexpr std::size_t record_footer_size = 4;   ///< Bytes after the data.
inline constexpr std::size_t record_overhead = record_header_size + record_footer_size;

/// Maximum size of the data of a record that a decoder accepts by default: 1 GiB. The limit of protobuf is 2 GiB.
inline constexpr std::uint64_t default_record_limit = std::uint64_t{1} << 30;

/// Completes a record in place: writes the length and the checksums around the data at `record_data(frame)`.
/// @pre `frame` has at least `record_overhead` bytes.
/// @cost One checksum of the data. Moves no bytes.
void seal_record(std::span<std::byte> frame) noexcept;

/// Returns the part of `frame` that holds the data. @pre `frame` has at least `record_overhead` bytes.
[[nodiscard]] inline std::span<std::byte> record_data(std::span<std::byte> frame) noexcept {
  return frame.subspan(record_header_size, frame.size() - record_overhead);
}

/// Appends one record with `data` to `out`.
void append_record(std::vector<std::byte>& out, std::span<const std::byte> data);

/// Returns the data of the first record in `bytes`. The result refers to `bytes`.
/// @errors `truncated` if `bytes` is empty or ends inside the record. `data_loss` if a checksum does not match or the length is above
///         `limit`. The records after such a record cannot be found, because the format has no synchronisation marks.
/// @cost   One checksum. Allocates for an error message only.
[[nodiscard]] result<std::span<const std::byte>> read_record(std::span<const std::byte> bytes, std::uint64_t limit = default_record_limit);

/// A decoder that splits a byte stream into records. Does no I/O: the caller feeds bytes, then takes records.
class record_decoder {
public:
  /// Creates a decoder that accepts records of at most `limit` bytes of data. `position` is the position of the first byte in the stream.
  explicit record_decoder(std::uint64_t limit = default_record_limit, std::uint64_t position = 0) : limit_(limit), position_(position) {}

  /// Appends `bytes` to the stream. @cost One copy of `bytes`, and of the bytes that were not yet returned.
  void feed(std::span<const std::byte> bytes);

  /// Returns the data of the next record. The result is valid until the next `feed`.
  /// @errors `truncated`: feed more bytes. If there are none and `pending()` is 0, the stream has ended properly.
  ///         `data_loss`: stop reading this stream. All later calls return the same error.
  [[nodiscard]] result<std::span<const std::byte>> next();

  /// Returns the length of the data of the next record. Returns nullopt if its header is incomplete or damaged.
  [[nodiscard]] std::optional<std::uint64_t> next_length() const;

  /// Returns the number of bytes that were fed but not yet returned in a record. A value above 0 at the end of a file means that the last
  /// record is incomplete.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size() - consumed_; }
  /// Returns the position of the next record in the stream, in bytes.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

private:
  std::uint64_t limit_;
  std::vector<std::byte> pending_;  // bytes that were fed
  std::size_t consumed_ = 0;        // number of bytes of `pending_` already returned; <= pending_.size()
  std::uint64_t position_;
};

}  // namespace stepwell::format
