// SPDX-License-Identifier: Apache-2.0
//
// File systems. All code that opens, renames or removes files uses a `file_system`, so that a test can make any of these operations fail,
// block or stop early.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/result.hpp"
#include "stepwell/io/detail/file_lock.hpp"
#include "stepwell/io/file.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stepwell::io {

/// The mode in which a file is opened.
enum class open_mode {
  read,        ///< Opens an existing file for reading.
  create_new,  ///< Creates a file for reading and writing. Fails with `already_exists` if it exists.
  overwrite,   ///< Opens a file for reading and writing. Creates it if it does not exist, and truncates it if it does.
  append,      ///< Opens a file for reading and writing. Creates it if it does not exist. Write at `size()` to append.
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

  /// Opens a regular file. Never blocks, because pipes, devices, sockets and directories are rejected. Symbolic links are followed for
  /// reading and rejected for writing.
  /// @errors `invalid_argument` if the path is not a regular file, or if it is a symbolic link and `mode` permits writing. Any error of the
  ///         system.
  [[nodiscard]] virtual result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) = 0;

  /// Renames `from` to `to` atomically, and replaces an existing file `to`. The rename is durable after `sync_directory`.
  virtual result<void> rename(const std::string& from, const std::string& to) = 0;

  /// Removes a file or an empty directory.
  virtual result<void> remove(const std::string& path) = 0;

  /// Makes the creation, renaming and removal of names in `directory` durable.
  virtual result<void> sync_directory(const std::string& directory) = 0;

  /// Creates `directory` and its missing parent directories, durably. Succeeds if the directory exists.
  virtual result<void> create_directories(const std::string& directory) = 0;

  /// Returns the names in `directory`, sorted, without "." and "..".
  [[nodiscard]] virtual result<std::vector<std::string>> list(const std::string& directory) = 0;

  /// Returns the properties of `path`. Follows links. @errors `not_found` if `path` does not exist.
  [[nodiscard]] virtual result<file_info> stat(const std::string& path) = 0;

  /// Returns true if `path` exists.
  /// @errors Errors after which the answer is unknown: for example, a parent directory without search permission.
  [[nodiscard]] result<bool> exists(const std::string& path);

  /// Returns the absolute path without links, "." and "..". All names of one directory have the same result.
  /// @errors `not_found` if `path` does not exist.
  [[nodiscard]] virtual result<std::string> canonical(const std::string& path) = 0;

  /// Locks the file `path` without waiting. Creates the file if it does not exist.
  /// @errors `failed_precondition` if the file is locked (the message names the holder), or if it is not a lock file. A file that is not a
  ///         lock file is left unchanged.
  [[nodiscard]] virtual result<std::unique_ptr<file_lock>> lock(const std::string& path) = 0;
};

/// Returns the file system of this machine.
[[nodiscard]] std::shared_ptr<file_system> posix_file_system();

}  // namespace stepwell::io
