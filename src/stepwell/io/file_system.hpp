// SPDX-License-Identifier: Apache-2.0
//
// The one door to the disk. Everything that opens, renames or removes goes through a `file_system`, so that a test can
// fail, delay or cut any of it.
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

enum class open_mode {
  read,        ///< Must be there; read only.
  create_new,  ///< Must not be there (`already_exists`); read and write.
  overwrite,   ///< Made if it is not there, emptied if it is; read and write.
  append,      ///< Made if it is not there, kept if it is; read and write. Write at `size()` to add to it.
};

/// What is known of a path without opening it.
struct file_info {
  std::uint64_t size = 0;  ///< bytes; of no meaning for a directory
  clock::wall_time modified;
  bool is_directory = false;
};

/// Names and files. Paths are what the system takes: relative ones count from the working directory.
/// @errors Everything reports the path it is about as `status::place`.
/// @threads Any.
class file_system {
public:
  file_system() = default;
  file_system(const file_system&) = delete;
  file_system& operator=(const file_system&) = delete;
  virtual ~file_system() = default;

  /// Opens a regular file. Never blocks: a pipe, a device, a socket or a directory of that name is an error. Files are read
  /// through symbolic links, but never written through one.
  /// @errors `invalid_argument` for what is no regular file, and for a symbolic link opened for writing.
  [[nodiscard]] virtual result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) = 0;

  /// Gives `from` the name `to` in one instant, replacing a file of that name. Durable after `sync_directory`.
  virtual result<void> rename(const std::string& from, const std::string& to) = 0;

  /// Removes a file or an empty directory.
  virtual result<void> remove(const std::string& path) = 0;

  /// Makes the names in `directory` (made, renamed, removed) durable.
  virtual result<void> sync_directory(const std::string& directory) = 0;

  /// Makes `directory` and those above it that are missing, durably. One that is there is fine.
  virtual result<void> create_directories(const std::string& directory) = 0;

  /// The names in `directory`, sorted, without "." and "..".
  [[nodiscard]] virtual result<std::vector<std::string>> list(const std::string& directory) = 0;

  /// @errors `not_found` if there is nothing. Links are followed.
  [[nodiscard]] virtual result<file_info> stat(const std::string& path) = 0;

  /// True if there is something at `path`.
  /// @errors Those that leave it open, such as a directory above that must not be searched.
  [[nodiscard]] result<bool> exists(const std::string& path);

  /// The absolute path without links, "." and "..": two names of one directory have the same.
  /// @errors `not_found` if there is nothing at `path`.
  [[nodiscard]] virtual result<std::string> canonical(const std::string& path) = 0;

  /// Takes the lock on the file `path` (made if absent) without waiting.
  /// @errors `failed_precondition` naming the holder, or for a file that is no lock file; such a file is left as it is.
  [[nodiscard]] virtual result<std::unique_ptr<file_lock>> lock(const std::string& path) = 0;
};

/// The files of this machine.
[[nodiscard]] std::shared_ptr<file_system> posix_file_system();

}  // namespace stepwell::io
