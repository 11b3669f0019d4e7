// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/posix_file.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/io/detail/failure.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <utility>

namespace stepwell::io {
namespace {

/// Maximum number of bytes per system call. Linux transfers at most 0x7ffff000 bytes per call.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

status refused(std::string_view tried, std::string_view why, const std::string& path) {
  return {errc::invalid_argument, fmt::format("{}: {}", tried, why), path};
}

constexpr std::string_view is_special =
    "this is a pipe, a device or a socket, not a regular file; remove it, or give the path of another file";

status open_failure(int errno_value, bool is_for_reading, std::string_view tried, const std::string& path) {
  if (errno_value == ENXIO || errno_value == ENODEV || errno_value == EOPNOTSUPP) { return refused(tried, is_special, path); }
  if (errno_value == ELOOP && !is_for_reading) {
    return refused(
        tried, "this is a symbolic link, and files are not written through links; remove the link, or give the path of its target", path);
  }
  return failure(errno_value, tried, path);
}

}  // namespace

result<std::unique_ptr<posix_file>> open_regular_file(const std::string& path, int flags, std::string_view tried) {
  const bool is_for_reading = (flags & O_ACCMODE) == O_RDONLY;
  const int all = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (is_for_reading ? 0 : O_NOFOLLOW);
  const int descriptor = retry_on_signal([&] { return ::open(path.c_str(), all, 0666); });
  if (descriptor < 0) { return open_failure(errno, is_for_reading, tried, path); }
  auto opened = std::make_unique<posix_file>(path, descriptor);
  struct ::stat about{};
  if (::fstat(descriptor, &about) < 0) { return failure(errno, tried, path); }
  if (S_ISDIR(about.st_mode)) { return failure(EISDIR, tried, path); }
  if (!S_ISREG(about.st_mode)) { return refused(tried, is_special, path); }
  return opened;
}

posix_file::~posix_file() {
  if (const auto closed = close(); !closed) { log_error(closed.error().to_string()); }
}

ssize_t posix_file::write_some(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  bytes = bytes.first(std::min(bytes.size(), most_at_once));
  if (past_cache_) { return past_cache_->write_some(offset, bytes); }
  return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

result<void> posix_file::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto moved = retry_on_signal([&] { return write_some(offset + done, bytes.subspan(done)); });
    if (moved <= 0) {
      const auto tried = fmt::format("could not write {} bytes at offset {} ({} written)", bytes.size(), offset, done);
      return failure(moved < 0 ? errno : ENOSPC, tried, path());
    }
    done += static_cast<std::size_t>(moved);
  }
  return {};
}

result<std::size_t> posix_file::read_at(std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto count = std::min(into.size() - done, most_at_once);
    const auto moved = retry_on_signal([&] { return ::pread(descriptor_, into.data() + done, count, static_cast<off_t>(offset + done)); });
    if (moved < 0) { return failure(errno, fmt::format("could not read {} bytes at offset {}", into.size(), offset), path()); }
    if (moved == 0) { break; }
    done += static_cast<std::size_t>(moved);
  }
  return done;
}

std::uint64_t posix_file::skip_hole([[maybe_unused]] std::uint64_t offset) noexcept {
#ifdef SEEK_DATA
  const auto found = ::lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) { return static_cast<std::uint64_t>(found); }
  struct ::stat about{};
  const bool is_hole_to_the_end = errno == ENXIO && ::fstat(descriptor_, &about) == 0;
  if (is_hole_to_the_end) { return std::max(offset, static_cast<std::uint64_t>(about.st_size)); }
#endif
  return offset;
}

result<void> posix_file::sync() {
  const std::lock_guard lock(sync_mutex_);
  if (sync_failure_) { return *sync_failure_; }
  if (retry_on_signal([&] { return ::fsync(descriptor_); }) < 0) {
    sync_failure_ = failure(errno, "could not sync it to the disk (fsync), written data may be lost", path());
    return *sync_failure_;
  }
  return {};
}

void posix_file::start_writeback(std::uint64_t offset, std::uint64_t size) noexcept {
#ifdef SYNC_FILE_RANGE_WRITE
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE));
#else
  static_cast<void>(offset), static_cast<void>(size);
#endif
}

void posix_file::bypass_cache() noexcept {
  if (!past_cache_) { past_cache_ = uncached_writer::open(descriptor_); }
}

result<std::uint64_t> posix_file::size() {
  struct ::stat about{};
  if (::fstat(descriptor_, &about) < 0) { return failure(errno, "could not get its size", path()); }
  return static_cast<std::uint64_t>(about.st_size);
}

result<void> posix_file::truncate(std::uint64_t size) {
  if (retry_on_signal([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }) < 0) {
    return failure(errno, fmt::format("could not set its size to {} bytes", size), path());
  }
  return {};
}

result<void> posix_file::close() {
  past_cache_.reset();
  const int descriptor = std::exchange(descriptor_, -1);
  // Linux closes the descriptor even if a signal interrupts the call, so the call must not be repeated.
  if (descriptor >= 0 && ::close(descriptor) < 0 && errno != EINTR) {
    return failure(errno, "could not close it without an error, data written before may be lost", path());
  }
  return {};
}

}  // namespace stepwell::io
