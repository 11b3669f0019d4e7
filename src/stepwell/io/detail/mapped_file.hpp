// SPDX-License-Identifier: Apache-2.0
//
// A file whose bytes are mapped into memory, for reading.
#pragma once

#include "stepwell/base/error.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace stepwell::io {

/// The bytes of a file as memory. The system reads a page when it is first used, and may drop it again.
/// A file that is truncated while it is mapped ends the process by SIGBUS at the next access.
class mapped_file {
public:
  /// Maps the regular file `path`. Never blocks, because pipes, devices and sockets are rejected.
  /// @errors `invalid_argument` if the path is not a regular file. Any error of the system.
  [[nodiscard]] static result<mapped_file> open(const std::string& path);

  mapped_file(mapped_file&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapped_file();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
  explicit mapped_file(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace stepwell::io
