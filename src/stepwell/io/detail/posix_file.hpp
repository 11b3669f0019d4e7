// SPDX-License-Identifier: Apache-2.0
//
// Private to `io`: a file of this machine, by pread, pwrite and fsync.
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

/// Repeats `call` while a signal interrupts it.
template<class Call>
auto retry_on_signal(Call call) {
  auto outcome = call();
  while (outcome < 0 && errno == EINTR) { outcome = call(); }
  return outcome;
}

class posix_file final : public file {
public:
  /// Takes over an open descriptor.
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

/// Opens the regular file `path` with these flags of open(2). Never blocks. Anything else of that name, such as a pipe, a device,
/// a socket or a directory, is refused; so is a symbolic link, unless it is opened for reading only. `tried`: for messages.
/// @errors `invalid_argument` for what is no regular file.
[[nodiscard]] result<std::unique_ptr<posix_file>> open_regular_file(const std::string& path, int flags, std::string_view tried);

}  // namespace stepwell::io
