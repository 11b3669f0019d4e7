// SPDX-License-Identifier: Apache-2.0
//
// The encoding of string tensors in data files: all lengths, a checksum of the lengths, then the bytes of all strings.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The bytes of a string tensor and the checksum for its index entry.
struct encoded_strings {
  std::string bytes;
  std::uint32_t crc32c = 0;  ///< Masked checksum. It differs from the checksum of `bytes`: it covers the lengths as fixed-size numbers.
};
/// Returns the encoding of `elements`.
[[nodiscard]] encoded_strings encode_strings(std::span<const std::string> elements);

/// The strings of a tensor and the checksum that its index entry must have.
struct decoded_strings {
  std::vector<std::string> elements;
  std::uint32_t crc32c = 0;  ///< Masked checksum. The caller compares it with the index entry.
};
/// Returns the strings in `bytes`.
/// @errors `data_loss` if `bytes` does not hold exactly `count` strings, or if the checksum of the lengths does not match.
/// @cost   Memory in proportion to the size of `bytes`, for all values of `count` and of the lengths.
[[nodiscard]] result<decoded_strings> decode_strings(std::string_view bytes, std::uint64_t count);

/// A checker for the bytes of a string tensor that is read in pieces. Its memory does not depend on the size of the tensor.
class string_checker {
public:
  /// Creates a checker for a tensor with `size` bytes and `count` elements according to its index entry.
  string_checker(std::uint64_t size, std::uint64_t count) : size_(size), left_(count), count_(count) {}

  /// Checks the next bytes. @errors `data_loss`, as `decode_strings`. @pre All calls together have at most `size` bytes.
  [[nodiscard]] result<void> feed(std::span<const std::byte> bytes);
  /// Like `feed` with `count` zero bytes. @cost O(log `count`).
  [[nodiscard]] result<void> feed_zeros(std::uint64_t count);
  /// Returns the masked checksum that the index entry of the tensor must have. @pre All bytes were fed.
  /// @errors `data_loss` if bytes are missing.
  [[nodiscard]] result<std::uint32_t> finish() const;

private:
  [[nodiscard]] result<void> take_length_byte(unsigned char byte);
  [[nodiscard]] result<void> take_checksum_byte(unsigned char byte);
  [[nodiscard]] result<void> add_lengths(std::uint64_t length, std::uint64_t count);

  std::uint64_t size_;
  std::uint64_t left_;  // number of lengths that are not yet complete
  std::uint64_t count_;
  std::uint64_t taken_ = 0;   // number of bytes fed so far
  std::uint64_t total_ = 0;   // sum of the lengths
  std::uint64_t length_ = 0;  // the length being read
  unsigned length_bytes_ = 0;
  std::uint32_t stored_ = 0;  // the checksum of the lengths
  unsigned stored_bytes_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace stepwell::format
