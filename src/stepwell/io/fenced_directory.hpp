// SPDX-License-Identifier: Apache-2.0
//
// A directory that only its newest writer can change. This needs no lock, lease or clock: each writer creates a subdirectory, and makes its
// changes by renames out of and into this subdirectory.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::io {

/// Returns true if `name`, the name of an entry of a directory, belongs to a fence: it is the directory of a writer.
[[nodiscard]] bool is_fence_name(std::string_view name) noexcept;

/// The case in which a `fenced_directory` uses its fence.
enum class fence_use {
  always,           ///< Always: opens the fence at the first change.
  if_not_lockable,  ///< Only if a lock is wanted and the file system has no locks. Otherwise all calls are passed on unchanged.
};

/// A file system whose changes in one directory, and below it, have an effect only while this object is the newest writer of the directory.
/// Changes elsewhere and all reads are passed on to another file system.
///
/// A writer creates `.stepwell-writer-N` in the directory, where N is one more than the highest existing number. Then it moves the
/// directories of all lower numbers into its own. Each later change of the directory is one rename out of the writer's own directory, or,
/// for a removal, into it. After a newer writer has moved that directory, the path of the rename does not exist. So each change of the
/// older writer fails, no matter where the older writer was suspended. The directory with the highest number is never removed.
///
/// A process can change an open file even if the file has lost its name. Therefore, each file that is opened for writing is a new file that
/// replaces the old one, and the writer's directory records its name. A newer writer replaces each recorded file by a copy. Later writes of
/// the older writer succeed, but change a file that has no name. `file::sync` of such a file fails.
///
/// `lock` opens the fence instead of locking a file.
/// @errors  After another writer has taken over the directory, all changes return `failed_precondition`; the message names the process of
///          that writer. `unimplemented` for a rename of a file that is not a temporary file (see `is_temporary_name`). Also the errors of
///          the other file system. A failure to open the fence is returned by the call that opens it, and the next change tries it again.
/// @threads Like `file_system`.
class fenced_directory final : public file_system {
public:
  /// Stores the arguments, without any access to files. Null for `base`: the file system of this machine.
  /// @pre `directory` is not empty, and no entry of it is a mount point.
  explicit fenced_directory(const std::string& directory, std::shared_ptr<file_system> base = nullptr, fence_use use = fence_use::always);
  ~fenced_directory() override;

  /// Makes this object the newest writer of the directory, unless it already is or was a writer. Creates the directory if necessary.
  /// Returns the number of this writer. Each writer of a directory has a higher number than all writers before it.
  /// @errors `failed_precondition` if another writer takes over at the same time, or did so earlier.
  /// @cost   About 10 calls of the file system, and a copy of each file that the previous writer was writing when it ended.
  result<std::uint64_t> open_fence();
  /// Returns success if no other writer has taken over the directory. Also succeeds if the fence is not open.
  [[nodiscard]] result<void> check();
  /// Returns the file system to which calls are passed on.
  [[nodiscard]] const std::shared_ptr<file_system>& base() const noexcept;
  [[nodiscard]] fence_use use() const noexcept;
  /// Returns the directory, as an absolute path.
  [[nodiscard]] const std::string& directory() const noexcept;

  [[nodiscard]] result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) override;
  result<void> rename(const std::string& from, const std::string& to) override;
  result<void> remove(const std::string& path) override;
  result<void> sync_directory(const std::string& directory) override;
  result<void> create_directories(const std::string& directory) override;
  result<void> create_directory(const std::string& path) override;
  [[nodiscard]] result<std::vector<std::string>> list(const std::string& directory) override;
  [[nodiscard]] result<file_info> stat(const std::string& path) override;
  [[nodiscard]] result<std::string> canonical(const std::string& path) override;
  /// Opens the fence. The lock is released by its destructor. If all locks have been released and another writer has then taken over, the
  /// next call of `lock` makes this object the newest writer again.
  [[nodiscard]] result<std::unique_ptr<file_lock>> lock(const std::string& path) override;

private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace stepwell::io
