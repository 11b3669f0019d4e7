// SPDX-License-Identifier: Apache-2.0
//
// TFRecord framing: a record consists of length, checksum of the length, data, and checksum of the data. The functions work on bytes in
// memory and do no I/O.
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

/// Default limit of the size of a record's data: 1 GiB. Larger records are rejected when they are read. The limit of protobuf is 2 GiB.
inline constexpr std::uint64_t default_record_limit = std::uint64_t{1} << 30;

/// Completes the record in `frame`, whose data is already at `record_data(frame)`: writes the length and the checksums around the data.
/// @pre `frame` has at least `record_overhead` bytes.
/// @cost One checksum of the data. Does not move the data.
void seal_record(std::span<std::byte> frame) noexcept;

/// Returns the part of `frame` that holds the data. @pre `frame` has at least `record_overhead` bytes.
[[nodiscard]] inline std::span<std::byte> record_data(std::span<std::byte> frame) noexcept {
  return frame.subspan(record_header_size, frame.size() - record_overhead);
}

/// Appends one record with `data` to `out`.
void append_record(std::vector<std::byte>& out, std::span<const std::byte> data);

/// Returns the data of the first record in `bytes`. The result refers to `bytes`.
/// @errors `truncated` if `bytes` is empty or ends inside the record. `data_loss` if a checksum does not match or the length is above
///         `limit`. After a damaged length, later records cannot be found, because the format has no synchronisation marks.
/// @cost   One checksum of the length, and one of the data. Allocates memory only for an error message.
[[nodiscard]] result<std::span<const std::byte>> read_record(std::span<const std::byte> bytes, std::uint64_t limit = default_record_limit);

/// A decoder that splits a byte stream into records. Does no I/O: the caller feeds bytes, then takes records.
class record_decoder {
public:
  /// Creates a decoder that accepts records of at most `limit` bytes of data. The first byte that is fed has this `position` in the stream.
  explicit record_decoder(std::uint64_t limit = default_record_limit, std::uint64_t position = 0) : limit_(limit), position_(position) {}

  /// Appends `bytes` to the stream. @cost One copy of `bytes`, and one of the bytes that were fed before and are not yet returned.
  void feed(std::span<const std::byte> bytes);

  /// Returns the data of the next record. The result is valid until the next `feed`.
  /// @errors `truncated`: the next record is not complete; feed more bytes. If the stream has no more bytes and `pending()` is 0, the
  ///         stream ends after a complete record. `data_loss`: all later calls return the same error, unless `skip` moves past the
  ///         record.
  [[nodiscard]] result<std::span<const std::byte>> next();

  /// Moves past the next record without checking its data, after `next` returned `data_loss`. Returns false and does nothing if the
  /// record is incomplete, or if its length is damaged or above the limit, so that the next record cannot be found.
  bool skip();

  /// Returns the length of the data of the next record. Returns nullopt if the header of this record is incomplete or damaged.
  [[nodiscard]] std::optional<std::uint64_t> next_length() const;

  /// Returns the number of bytes that were fed and do not belong to a record returned by `next`. If all bytes of a file were fed and `next`
  /// returns `truncated`, a value above 0 means that the last record is incomplete.
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
