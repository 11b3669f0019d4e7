// SPDX-License-Identifier: Apache-2.0
//
// Locks with one owner at a time, for directories. A lock is released when its owner ends, and its file names the owner.
#pragma once

#include "stepwell/base/result.hpp"

#include <memory>
#include <string>

namespace stepwell::io {

/// A held lock (flock) on a file that names the holder. The destructor releases the lock. The system releases it when the process ends, in
/// every case. The file is not removed. A child process created by `fork` without `exec` holds the lock, too.
class file_lock {
public:
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;
  virtual ~file_lock() = default;

  /// Returns false if `path` is a different file than the locked file. The locked file was then moved or removed, and another owner may
  /// hold the file in its place. Returns true if `path` does not exist.
  [[nodiscard]] virtual bool is_at(const std::string& path) const noexcept = 0;

protected:
  file_lock() = default;
};

/// Locks the file `path` without waiting. Creates the file if it does not exist. Other code uses `file_system::lock` instead.
/// @errors `failed_precondition` if any process holds the lock, this process included; the message names process, host and start time.
///         `failed_precondition` if the content of the file is not that of a lock file; the file is then left unchanged.
///         `invalid_argument` if `path` is not a regular file. Any error of the system.
[[nodiscard]] result<std::unique_ptr<file_lock>> lock_posix_file(const std::string& path);

}  // namespace stepwell::io
