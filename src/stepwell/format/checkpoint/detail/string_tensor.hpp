// SPDX-License-Identifier: Apache-2.0
//
// How a tensor of strings stands in a data file: lengths, a checksum of the lengths, then the bytes of all.
#pragma once

#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::format {

/// The bytes of a string tensor and the checksum its index entry carries.
struct encoded_strings {
  std::string bytes;
  std::uint32_t crc32c = 0;  ///< Masked. Not that of `bytes`: lengths count as fixed-size numbers.
};
[[nodiscard]] encoded_strings encode_strings(std::span<const std::string> elements);

/// The strings of a tensor, and the checksum its entry ought to have.
struct decoded_strings {
  std::vector<std::string> elements;
  std::uint32_t crc32c = 0;  ///< Masked; the caller compares.
};
/// @errors `data_loss` when `bytes` do not hold exactly `count` strings, or the checksum of the lengths is wrong.
/// @cost   Memory in proportion to `bytes`, whatever `count` and the lengths claim.
[[nodiscard]] result<decoded_strings> decode_strings(std::string_view bytes, std::uint64_t count);

/// Checks the bytes of a string tensor as they are read. Memory does not depend on the size of the tensor.
class string_checker {
public:
  /// For a tensor of `size` bytes that is said to have `count` elements.
  string_checker(std::uint64_t size, std::uint64_t count) : size_(size), left_(count), count_(count) {}

  /// Takes the next bytes. @errors `data_loss`, as `decode_strings`. @pre No more than `size` bytes in all.
  [[nodiscard]] result<void> feed(std::span<const std::byte> bytes);
  /// Takes `count` zero bytes. @cost O(log `count`).
  [[nodiscard]] result<void> feed_zeros(std::uint64_t count);
  /// Returns the masked checksum that the entry of the tensor must have. @pre All bytes were taken.
  /// @errors `data_loss` if bytes are missing.
  [[nodiscard]] result<std::uint32_t> finish() const;

private:
  [[nodiscard]] result<void> take_length_byte(unsigned char byte);
  [[nodiscard]] result<void> take_checksum_byte(unsigned char byte);
  [[nodiscard]] result<void> add_lengths(std::uint64_t length, std::uint64_t count);

  std::uint64_t size_;
  std::uint64_t left_;  // lengths that are still to come
  std::uint64_t count_;
  std::uint64_t taken_ = 0;
  std::uint64_t total_ = 0;   // of the lengths
  std::uint64_t length_ = 0;  // the one being read
  unsigned length_bytes_ = 0;
  std::uint32_t stored_ = 0;  // the checksum of the lengths
  unsigned stored_bytes_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace stepwell::format
