// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/file_lock.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/io/failure.hpp"
#include "stepwell/io/posix_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <ctime>
#include <span>
#include <string_view>
#include <utility>

namespace stepwell::io {
namespace {

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) < 0) { return "an unnamed host"; }
  return name.data();
}

/// "process 12 on host a since 2026-01-02T03:04:05Z": the whole content of a lock file.
std::string holder_line() {
  const auto now = std::chrono::system_clock::to_time_t(system_clock()->wall_now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("process {} on host {} since {:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", ::getpid(), this_host(), parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

class posix_lock final : public file_lock {
public:
  posix_lock(std::unique_ptr<posix_file> held, int descriptor) : held_(std::move(held)), descriptor_(descriptor) {}
  ~posix_lock() override { static_cast<void>(held_->truncate(0)); }  // nobody holds it: name nobody

  [[nodiscard]] bool is_at(const std::string& path) const noexcept override {
    struct ::stat ours{};
    struct ::stat there{};
    if (::fstat(descriptor_, &ours) < 0 || ::stat(path.c_str(), &there) < 0) { return true; }
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  }

private:
  std::unique_ptr<posix_file> held_;  // closing it lets go
  int descriptor_;                    // of `held_`
};

status held_by_other(posix_file& file) {
  std::array<std::byte, 512> text{};
  const auto count = file.read_at(0, text);
  const std::string holder(reinterpret_cast<const char*>(text.data()), count ? *count : 0);
  const bool is_ours = holder.starts_with(fmt::format("process {} on host {} ", ::getpid(), this_host()));
  return {errc::failed_precondition,
          fmt::format("could not lock it: it is held by {}{}; stop that one first, or choose another directory",
                      holder.empty() ? "a process that has not yet written its name" : holder, is_ours ? " (this very process)" : ""),
          file.path()};
}

}  // namespace

result<std::unique_ptr<file_lock>> lock_posix_file(const std::string& path) {
  const int descriptor = retry_on_signal([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (descriptor < 0) { return failure(errno, "could not open the lock file", path); }
  auto file = std::make_unique<posix_file>(path, descriptor);
  if (retry_on_signal([&] { return ::flock(descriptor, LOCK_EX | LOCK_NB); }) < 0) {
    if (errno == EWOULDBLOCK) { return held_by_other(*file); }
    return failure(errno, "could not lock it (flock)", path);
  }
  if (auto emptied = file->truncate(0); !emptied) { return std::move(emptied).error(); }
  const auto line = holder_line();
  if (auto named = file->write_at(0, std::as_bytes(std::span(line))); !named) { return std::move(named).error(); }
  return std::make_unique<posix_lock>(std::move(file), descriptor);
}

}  // namespace stepwell::io
