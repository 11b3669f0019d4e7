// SPDX-License-Identifier: Apache-2.0
//
// Writes ZIP archives of uncompressed files, of any size and number.
#pragma once

#include "stepwell/io/atomic_file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepwell::tool {

/// Writes an archive into an atomic_file: the archive appears when it is complete. Sizes above 4 GiB or more than 65535 files result in a
/// ZIP64 archive. All times are the ZIP epoch, so that equal files give equal archives.
/// @errors Failures of the file system; `invalid_argument_error` for a name of more than 65535 bytes.
class zip_writer {
public:
  explicit zip_writer(io::atomic_file target) : target_(std::move(target)) {}

  /// Begins a file of known size and CRC-32. Exactly `size` bytes must be appended afterwards.
  void begin(const std::string& name, std::uint64_t size, std::uint32_t crc32);
  void append(std::span<const std::byte> bytes);
  /// Writes the central directory, and gives the archive its final name.
  void finish();

private:
  struct member {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t crc32 = 0;
    std::uint64_t offset = 0;
  };
  void flush();

  io::atomic_file target_;
  std::vector<std::byte> buffer_;  // collects small pieces before they are written
  std::vector<member> members_;
};

/// Returns the CRC-32 of `bytes`, continued from `before` (initially 0).
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace stepwell::tool
