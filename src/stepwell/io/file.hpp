// SPDX-License-Identifier: Apache-2.0
//
// Open files: reads and writes at offsets, and durability (`sync`).
#pragma once

#include "stepwell/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace stepwell::io {

/// Alignment in bytes, in the file and in memory, that lets `file::bypass_cache` write without a copy. Current disks require no more.
inline constexpr std::size_t page_size = 4096;

/// An open file, opened by a `file_system`. The functions continue interrupted calls and short writes.
/// The destructor closes an open file and logs errors.
/// @threads Reads and writes of different ranges may run concurrently. No other call may run during `close`.
class file {
public:
  explicit file(std::string path) : path_(std::move(path)) {}
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  virtual ~file() = default;

  /// Returns the path by which the file was opened. A later rename does not change it.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Writes all of `bytes` at `offset`. A gap between the end of the file and `offset` reads as zeros.
  /// @errors Any error of the system. An unknown part of `bytes` may then be written. The same range may be written again.
  virtual result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

  /// Reads bytes at `offset` into `into`. Returns the number of bytes read, which is less than `into.size()` at the end of the file only.
  /// @errors Any error of the system.
  virtual result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) = 0;

  /// Returns the end of the hole at `offset` in a sparse file, at most the size of the file. All bytes from `offset` to the end of the hole
  /// read as zeros. Returns `offset` if no hole is known there.
  [[nodiscard]] virtual std::uint64_t skip_hole(std::uint64_t offset) noexcept { return offset; }

  /// Makes all bytes written before durable: they survive a crash of the machine.
  /// @errors Any error of the system. After a failure all later calls return the same error, because the system may have dropped the bytes
  ///         and would then report success. Write a new file instead.
  virtual result<void> sync() = 0;

  /// Hints the system to start writing these bytes to the disk, so that a later `sync` takes less time.
  virtual void start_writeback([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t size) noexcept {}

  /// Hints that later writes should bypass the cache of the system, if the system and the file system support it. Writing a large file then
  /// takes neither cache memory nor long copies. Useful for files that are read again late or never. A `sync` is still necessary.
  virtual void bypass_cache() noexcept {}

  /// Returns the size in bytes. @errors Any error of the system.
  [[nodiscard]] virtual result<std::uint64_t> size() = 0;

  /// Sets the size in bytes. Removes bytes from the end, or appends zeros. @errors Any error of the system.
  virtual result<void> truncate(std::uint64_t size) = 0;

  /// Closes the file. The second call does nothing.
  /// @errors Errors of earlier writes that the system reports late (disk quota and network file systems). The file is closed nevertheless.
  virtual result<void> close() = 0;

private:
  std::string path_;
};

}  // namespace stepwell::io
