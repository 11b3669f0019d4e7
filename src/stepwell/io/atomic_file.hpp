// SPDX-License-Identifier: Apache-2.0
//
// The commit protocol, which exists once: written aside, synced, closed, renamed into place, directory synced. Nobody
// ever sees a part of a file that was published this way, whenever the machine stops.
#pragma once

#include "stepwell/base/result.hpp"
#include "stepwell/io/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::io {

/// True for names (without directory) of files being written aside. Such a file that nobody is writing is what a
/// killed process left: remove it.
[[nodiscard]] bool is_temporary_name(std::string_view name) noexcept;

/// The name that the file written aside as `name` was to get, or the first 200 bytes of it; empty for any other name.
[[nodiscard]] std::string_view final_name_of_temporary(std::string_view name) noexcept;

/// A file that appears under its name only when it is whole. Destroyed before it has its name, it leaves nothing.
///
/// One file: `append`..., `publish`. Several that belong together: `append` and `finish` each, then
/// `rename_into_place` each, then `file_system::sync_directory` once.
/// @threads One at a time.
class atomic_file {
public:
  /// Opens a temporary file beside `final_path`.
  /// @lifetime `files` must outlive it.
  [[nodiscard]] static result<atomic_file> create(file_system& files, std::string final_path);

  atomic_file(atomic_file&& other) noexcept;
  atomic_file& operator=(atomic_file&& other) noexcept;
  ~atomic_file();

  /// Adds `bytes` at the end. One write: collect small pieces before.
  /// @errors Any of the system; the file can then only be discarded.
  result<void> append(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Makes the bytes durable under the temporary name, and closes it. The second call does nothing.
  /// @errors Any of the system, also one met by an earlier `append`; the file can then only be discarded.
  result<void> finish();

  /// Gives a finished file its name, replacing what had it. Durable once the directory is synced.
  result<void> rename_into_place();

  /// `finish`, `rename_into_place`, and sync of the directory.
  /// @errors When the last of these fails the new file is in place, whole, but a crash may still bring the old one back.
  result<void> publish();

  /// Closes and removes the temporary file; errors are logged.
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
  std::uint64_t handed_over_ = 0;  // bytes that are on their way to the disk
  stage stage_ = stage::open;
  status reason_;  // of `failed`
};

/// Replaces the file `path` by `bytes`: after a crash there is the old one or the new one, whole.
result<void> write_file_atomically(file_system& files, const std::string& path, std::span<const std::byte> bytes);
result<void> write_file_atomically(file_system& files, const std::string& path, std::string_view text);

}  // namespace stepwell::io
