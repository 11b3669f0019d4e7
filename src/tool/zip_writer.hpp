// SPDX-License-Identifier: Apache-2.0
//
// ZIP archives of files that are stored as they are, of any size and number.
#pragma once

#include "stepwell/io/atomic_file.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepwell::tool {

/// Writes into an atomic_file: the archive is there when it is whole. Sizes above 4 GiB and more than 65535 files make
/// it a ZIP64. Times are those of the epoch of ZIP, so that equal files make equal archives.
/// @errors Functions throw what the file system says; `invalid_argument_error` for a name of more than 65535 bytes.
class zip_writer {
public:
  explicit zip_writer(io::atomic_file target) : target_(std::move(target)) {}

  /// Begins a file; its size and ordinary CRC-32 must be known. Then `append` exactly `size` bytes.
  void begin(const std::string& name, std::uint64_t size, std::uint32_t crc32);
  void append(std::span<const std::byte> bytes);
  /// The directory of it all; then the archive gets its name.
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
  std::vector<std::byte> buffer_;  // small pieces on their way to the file
  std::vector<member> members_;
};

/// Goes on with a CRC-32 (0 at first).
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace stepwell::tool
