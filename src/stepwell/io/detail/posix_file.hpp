// SPDX-License-Identifier: Apache-2.0
//
// Private to `io`: implementation of `file` by pread, pwrite and fsync.
#pragma once

#include "stepwell/io/detail/uncached_writer.hpp"
#include "stepwell/io/file.hpp"

#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell::io {

/// Returns the result of `call`. Repeats the call while it fails with EINTR.
template<class Call>
auto retry_on_signal(Call call) {
  auto outcome = call();
  while (outcome < 0 && errno == EINTR) { outcome = call(); }
  return outcome;
}

/// A file that owns a POSIX descriptor.
class posix_file final : public file {
public:
  /// Takes ownership of an open descriptor.
  posix_file(std::string path, int descriptor) : file(std::move(path)), descriptor_(descriptor) {}
  ~posix_file() override;

  result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override;
  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override;
  std::uint64_t skip_hole(std::uint64_t offset) noexcept override;
  result<void> sync() override;
  void start_writeback(std::uint64_t offset, std::uint64_t size) noexcept override;
  void bypass_cache() noexcept override;
  result<std::uint64_t> size() override;
  result<void> truncate(std::uint64_t size) override;
  result<void> close() override;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

private:
  ssize_t write_some(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

  int descriptor_;
  std::unique_ptr<uncached_writer> past_cache_;
  std::mutex sync_mutex_;
  std::optional<status> sync_failure_;
};

/// Opens the regular file `path` with the flags `flags` of open(2). Never blocks. Rejects pipes, devices, sockets and directories, and also
/// rejects symbolic links unless the file is opened for reading only. `tried` names the operation in messages.
/// @errors `invalid_argument` if `path` is rejected. Any error of the system.
[[nodiscard]] result<std::unique_ptr<posix_file>> open_regular_file(const std::string& path, int flags, std::string_view tried);

}  // namespace stepwell::io
