// SPDX-License-Identifier: Apache-2.0
//
// One open file: bytes at offsets, and the promise of the disk (`sync`).
#pragma once

#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace stepwell::io {

/// What `file::bypass_cache` writes without a copy begins at multiples of this, in the file and in memory: as much as
/// today's disks ask for.
inline constexpr std::size_t page_size = 4096;

/// An open file, opened by a `file_system`. Interrupted calls and short writes are taken up again inside.
/// Destroying one that is open closes it; an error met then is logged, as nobody is left to be told.
/// @threads Reads and writes of different ranges may run at the same time; `close` alone.
class file {
public:
  explicit file(std::string path) : path_(std::move(path)) {}
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  virtual ~file() = default;

  /// The name it was opened by; a later rename does not change it.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Writes all of `bytes` from `offset` on; a gap before `offset` reads as zeros.
  /// @errors Any of the system; an unknown part of `bytes` may then be written. Writing the same range again is allowed.
  virtual result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

  /// Fills `into` from `offset` on. The bytes read: fewer than asked for only at the end of the file.
  virtual result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) = 0;

  /// Returns the end of the hole of a sparse file that `offset` lies in, at most the size of the file: all bytes before it read
  /// as zeros. Returns `offset` where no hole is known.
  [[nodiscard]] virtual std::uint64_t skip_hole(std::uint64_t offset) noexcept { return offset; }

  /// Once this succeeds, a crash of the machine can not lose what was written before.
  /// @errors A failed sync stays failed: every later call gives the same error, as the system may have dropped the
  ///         bytes and would report success. Write the file anew.
  virtual result<void> sync() = 0;

  /// Lets the system begin to move these bytes to the disk now, so that a later `sync` has less to wait for. Only a hint.
  virtual void start_writeback([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t size) noexcept {}

  /// Lets later writes go to the disk without passing through the memory of the system, where both can: a big file that
  /// is not read again soon then takes neither memory nor long copies. Only a hint; sync as ever.
  virtual void bypass_cache() noexcept {}

  [[nodiscard]] virtual result<std::uint64_t> size() = 0;

  /// Cuts the file to `size` bytes, or fills it up with zeros.
  virtual result<void> truncate(std::uint64_t size) = 0;

  /// Closes it; the second call does nothing.
  /// @errors Those the system kept for now (disk quota and network file systems). It is closed all the same.
  virtual result<void> close() = 0;

private:
  std::string path_;
};

}  // namespace stepwell::io
