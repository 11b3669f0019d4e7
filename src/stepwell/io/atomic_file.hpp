// SPDX-License-Identifier: Apache-2.0
//
// Atomic replacement of files. A file is written under a temporary name, synced, closed and renamed to its final name. Then its directory
// is synced. Readers never see a partial file, even if the machine stops at any instant. All code of stepwell that replaces a file uses
// this header.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::io {

/// Returns true if `name` is the name of a temporary file. A temporary file that no process writes any more was left by a killed process,
/// and can be removed.
/// @pre `name` has no directory part.
[[nodiscard]] bool is_temporary_name(std::string_view name) noexcept;

/// Returns the final name of the temporary file `name`. If the final name is longer than 200 bytes, returns its first 200 bytes. If `name`
/// is not the name of a temporary file, returns an empty string.
[[nodiscard]] std::string_view final_name_of_temporary(std::string_view name) noexcept;

/// A file that appears under its final name only when it is complete. Until then its content is in a temporary file, which the destructor
/// removes.
///
/// For one file, call `append` any number of times, then `publish`. For several files that belong together, call `append` and `finish` for
/// each file, then `rename_into_place` for each file, then `file_system::sync_directory` once.
/// @threads One thread at a time.
class atomic_file {
public:
  /// Opens a temporary file in the directory of `final_path`.
  /// @errors   Any error of the file system.
  /// @lifetime `files` must outlive the returned file.
  [[nodiscard]] static result<atomic_file> create(file_system& files, std::string final_path);

  atomic_file(atomic_file&& other) noexcept;
  atomic_file& operator=(atomic_file&&) = delete;
  ~atomic_file();

  /// Appends `bytes`. Each call is one write, so collect small pieces first.
  /// @errors Any error of the file system. The file can then only be discarded.
  result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Makes the bytes durable under the temporary name, and closes the file. A second call does nothing.
  /// @errors Any error of the file system, including the error of an earlier `append`. The file can then only be discarded.
  result<void> finish();

  /// Renames a finished file to its final name, and replaces an existing file of that name. The rename becomes durable only when the
  /// directory is synced afterwards.
  /// @errors `failed_precondition` if `finish` was not called, or if the file was renamed before. Any error of the file system, including
  ///         the error of an earlier call.
  result<void> rename_into_place();

  /// Calls `finish` and `rename_into_place`, then syncs the directory.
  /// @errors The errors of these calls. If only the sync of the directory fails, the new file is complete and has its final name, but after
  ///         a crash of the machine the old file may be back.
  result<void> publish();

  /// Closes and removes the temporary file. Logs errors.
  void discard() noexcept;

  [[nodiscard]] const std::string& final_path() const noexcept { return final_path_; }
  [[nodiscard]] const std::string& temporary_path() const noexcept { return temporary_path_; }

private:
  enum class stage { open, failed, finished, gone };

  atomic_file(file_system& files, std::string final_path, std::string temporary_path, std::unique_ptr<file> content);
  result<void> fail(status reason);

  file_system* files_;
  std::string final_path_;
  std::string temporary_path_;
  std::unique_ptr<file> content_;
  std::uint64_t size_ = 0;
  std::uint64_t handed_over_ = 0;  // number of bytes for which writeback has started
  stage stage_ = stage::open;
  status reason_;  // the error, if the stage is `failed`
};

/// Replaces the file `path` by a file that contains `bytes`, or creates the file. After a crash, `path` is either the old file (or does not
/// exist, as before) or the complete new file.
/// @errors Any error of the file system.
result<void> write_file_atomically(file_system& files, const std::string& path, std::span<const std::byte> bytes);
inline result<void> write_file_atomically(file_system& files, const std::string& path, std::string_view text) {
  return write_file_atomically(files, path, std::as_bytes(std::span(text)));
}

}  // namespace stepwell::io
