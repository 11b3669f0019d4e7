// SPDX-License-Identifier: Apache-2.0
//
// Files and file systems. All code of the library that opens, renames or removes files uses a `file_system`. A test can therefore use a
// file system of its own, in which any of these operations fails, blocks or stops early.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::io {

/// Returns the path of `name` in `directory`: "run/model.ckpt-3.index" for "run" and "model.ckpt-3.index".
[[nodiscard]] inline std::string join_path(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.empty() && path.back() != '/') { path.push_back('/'); }
  return path.append(name);
}

/// Returns the directory of `path`: "run" for "run/a", "." for "a", "/" for "/a".
[[nodiscard]] inline std::string parent_directory(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') { path.remove_suffix(1); }
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) { return "."; }
  const auto end = path.find_last_not_of('/', slash);
  return end == std::string_view::npos ? "/" : std::string(path.substr(0, end + 1));
}

/// Returns the last component of `path`: "a" for "run/a".
[[nodiscard]] inline std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') { path.remove_suffix(1); }
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

/// Returns the absolute path of `path`, for the current working directory of the process. Objects of the library that store a path store
/// this result, so that a later change of the working directory does not affect them. Does not resolve links. An empty path stays empty.
/// @errors Any error of the system, for example if the working directory was removed.
[[nodiscard]] result<std::string> absolute_path(std::string_view path);

/// Alignment in bytes, both in the file and in memory, that data must have to be transferred without a copy: by `file::read_uncached`, and
/// by writes after `file::bypass_cache`. Current disks require no larger alignment.
inline constexpr std::size_t page_size = 4096;

/// A file that was opened by a `file_system`. The functions repeat system calls that were interrupted or transferred only a part of the
/// bytes. The destructor calls `close` if it was not called, and logs errors.
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
  /// @errors Any error of the system. After a failure, an unknown part of `bytes` has been written. The caller may repeat the call.
  virtual result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;

  /// Reads bytes at `offset` into `into`. Returns the number of bytes read. The number is less than `into.size()` only at the end of the
  /// file.
  /// @errors Any error of the system.
  virtual result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) = 0;

  /// Like `read_at`, but reads directly from the disk into memory, without the cache of the system, if `offset`, the address and the size
  /// of `into` are multiples of `page_size`, and if the system and the file system support this. Reading a large file then takes neither
  /// cache memory nor a copy. A later read of the same bytes takes as long as the first one. Reads through the cache otherwise.
  /// @errors Any error of the system.
  virtual result<std::size_t> read_uncached(std::uint64_t offset, std::span<std::byte> into) { return read_at(offset, into); }

  /// Returns false if most of the `size` bytes at `offset` are not in the cache of the system. Checks at most 16 pages. Returns true if the
  /// system does not report this. Linux reports it to the owner of the file, and to processes that may write to it.
  [[nodiscard]] virtual bool is_cached([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t size) noexcept { return true; }

  /// Asks the system to read `size` bytes at `offset` from the disk soon, so that a later `read_at` takes less time.
  virtual void start_reading([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t size) noexcept {}

  /// Returns the end of the hole in which `offset` lies, if the file is sparse. The end is at most the size of the file. All bytes from
  /// `offset` to the end of the hole read as zeros. Returns `offset` if no hole is known at `offset`.
  [[nodiscard]] virtual std::uint64_t skip_hole(std::uint64_t offset) noexcept { return offset; }

  /// Makes all bytes that were written before this call durable: they survive a crash of the machine.
  /// @errors Any error of the system. After a failure, the system may have dropped the bytes, and may nevertheless report success for the
  ///         next sync. Therefore all later calls of `sync` return the first error. After such an error, write a new file.
  virtual result<void> sync() = 0;

  /// Asks the system to start writing `size` bytes at `offset` to the disk, so that a later `sync` takes less time.
  virtual void start_writeback([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] std::uint64_t size) noexcept {}

  /// Makes later writes bypass the cache of the system, if the system and the file system support this. Writing a large file then takes
  /// neither cache memory nor long copies. Use it for files that are not read again soon. A `sync` is still necessary.
  virtual void bypass_cache() noexcept {}

  /// Returns the size in bytes. @errors Any error of the system.
  [[nodiscard]] virtual result<std::uint64_t> size() = 0;

  /// Sets the size in bytes. Removes bytes from the end, or appends zeros. @errors Any error of the system.
  virtual result<void> truncate(std::uint64_t size) = 0;

  /// Closes the file. Further calls do nothing.
  /// @errors Errors of earlier writes that the system reports only at the close (disk quota, network file systems). The file is closed
  ///         nevertheless.
  virtual result<void> close() = 0;

private:
  std::string path_;
};

/// A lock (flock) that this process holds on a lock file. The file contains the process id and the host of the holder, and the time of the
/// lock. The destructor releases the lock, even if a child process created by `fork` still has the file open. In such a child, the destructor
/// does not release the lock of its parent. If the process ends without the destructor, the system releases the lock when all such children
/// have ended, too. The file is not removed.
class file_lock {
public:
  file_lock() = default;
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;
  virtual ~file_lock() = default;

  /// Returns true if the file at `path` is the locked file. If it is not, the locked file was moved or removed: another process may now
  /// lock a file at `path`. Returns true if the system cannot tell.
  [[nodiscard]] virtual bool is_at(const std::string& path) const noexcept = 0;
};

/// The mode in which a file is opened.
enum class open_mode {
  read,        ///< Opens an existing file for reading.
  create_new,  ///< Creates a file for reading and writing. Fails with `already_exists` if it exists.
  overwrite,   ///< Opens a file for reading and writing. Creates it if it does not exist, and empties it if it exists.
  append,      ///< Opens a file for reading and writing. Creates it if it does not exist. To append, write at offset `size()`.
};

/// Properties of a path, available without opening it.
struct file_info {
  std::uint64_t size = 0;     ///< Size in bytes. Meaningless for a directory.
  clock::wall_time modified;  ///< Time of the last modification.
  bool is_directory = false;
};

/// A file system: names of files and directories, and access to files. Relative paths are relative to the working directory.
/// @errors All functions report the affected path as `status::place`.
/// @threads All functions may be called from any thread.
class file_system {
public:
  file_system() = default;
  file_system(const file_system&) = delete;
  file_system& operator=(const file_system&) = delete;
  virtual ~file_system() = default;

  /// Opens a regular file. Pipes, devices, sockets and directories are rejected, so the call never waits for another process. Symbolic
  /// links are followed if `mode` is `read`, and rejected otherwise.
  /// @errors `invalid_argument` if `path` is not a regular file, or if it is a symbolic link and `mode` is not `read`. Any error of the
  ///         system.
  [[nodiscard]] virtual result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) = 0;

  /// Renames `from` to `to` atomically, and replaces an existing file `to`. The rename is durable after `sync_directory`.
  virtual result<void> rename(const std::string& from, const std::string& to) = 0;

  /// Removes a file or an empty directory.
  virtual result<void> remove(const std::string& path) = 0;

  /// Makes all earlier creations, renames and removals of files in `directory` durable.
  virtual result<void> sync_directory(const std::string& directory) = 0;

  /// Creates `directory` and its missing parent directories, durably. Succeeds if the directory exists.
  virtual result<void> create_directories(const std::string& directory) = 0;

  /// Creates the directory `path`, whose parent directory must exist. The directory is durable after `sync_directory` of its parent. A
  /// `fenced_directory` needs this function of the file system below it.
  /// @errors `already_exists`. `unimplemented` if the file system has no such operation.
  virtual result<void> create_directory(const std::string& path);

  /// Returns the sorted names of all entries of `directory`, except "." and "..".
  [[nodiscard]] virtual result<std::vector<std::string>> list(const std::string& directory) = 0;

  /// Returns the properties of the file or directory at `path`. Follows links. @errors `not_found` if `path` does not exist.
  [[nodiscard]] virtual result<file_info> stat(const std::string& path) = 0;

  /// Returns true if `path` exists, also if it cannot be followed because its links form a loop, or because it is too long.
  /// @errors Any error of the system except `not_found`, for example if a parent directory has no search permission.
  [[nodiscard]] result<bool> exists(const std::string& path);

  /// Returns the absolute path without links, "." and "..". The result is the same for all paths that lead to the same directory.
  /// @errors `not_found` if `path` does not exist.
  [[nodiscard]] virtual result<std::string> canonical(const std::string& path) = 0;

  /// Locks the file `path` without waiting. Creates the file if it does not exist.
  /// @errors `failed_precondition` if another process or this process holds the lock; the message names the process, its host and the time
  ///         of the lock. `failed_precondition` if the content of the file is not that of a lock file; the file is then left unchanged.
  ///         `invalid_argument` if `path` is not a regular file. `unimplemented` if the file system has no locks. Any error of the system.
  [[nodiscard]] virtual result<std::unique_ptr<file_lock>> lock(const std::string& path) = 0;
};

/// Returns the file system of this machine.
[[nodiscard]] std::shared_ptr<file_system> posix_file_system();

}  // namespace stepwell::io
