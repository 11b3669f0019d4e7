// SPDX-License-Identifier: Apache-2.0
//
// One owner at a time for a directory: a lock that dies with its holder and says who that is.
#pragma once

#include "stepwell/base/result.hpp"

#include <memory>
#include <string>

namespace stepwell::io {

/// A held lock (flock) on a file that names the holder; destroying it lets go. The system lets go when the process
/// ends, however it ends. The file itself stays. A child made by `fork` without `exec` holds the lock too.
class file_lock {
public:
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;
  virtual ~file_lock() = default;

  /// False if `path` leads to another file than the locked one: that was moved or removed, and another stands in its
  /// place, which somebody else may hold. True where nothing stands.
  [[nodiscard]] virtual bool is_at(const std::string& path) const noexcept = 0;

protected:
  file_lock() = default;
};

/// Takes the lock on the file `path`, made if it is not there; never waits. Use `file_system::lock`.
/// @errors `failed_precondition` naming process, host and start when somebody holds it, this process included, and for a file
///         with content that is not a lock's: it is left as it is. `invalid_argument` for what is no regular file.
[[nodiscard]] result<std::unique_ptr<file_lock>> lock_posix_file(const std::string& path);

}  // namespace stepwell::io
