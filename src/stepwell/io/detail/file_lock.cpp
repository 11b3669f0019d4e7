// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/file_lock.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/io/detail/failure.hpp"
#include "stepwell/io/detail/posix_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell::io {
namespace {

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) < 0) { return "an unnamed host"; }
  return name.data();
}

/// Returns the complete content of a lock file: "process 12 on host a since 2026-01-02T03:04:05Z".
std::string holder_line() {
  const auto now = std::chrono::system_clock::to_time_t(system_clock()->wall_now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("process {} on host {} since {:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", ::getpid(), this_host(), parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

class posix_lock final : public file_lock {
public:
  explicit posix_lock(std::unique_ptr<posix_file> held) : held_(std::move(held)) {}
  ~posix_lock() override { static_cast<void>(held_->truncate(0)); }  // the file names no holder after the release

  [[nodiscard]] bool is_at(const std::string& path) const noexcept override {
    struct ::stat ours{};
    struct ::stat there{};
    if (::fstat(held_->descriptor(), &ours) < 0 || ::stat(path.c_str(), &there) < 0) { return true; }
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  }

private:
  std::unique_ptr<posix_file> held_;  // closing the file releases the lock
};

constexpr std::size_t longest_holder_line = 512;

/// Returns the beginning of the file. For a lock file this is the complete content.
result<std::string> read_beginning(posix_file& file) {
  std::string text(longest_holder_line + 1, '\0');
  auto count = file.read_at(0, std::as_writable_bytes(std::span(text)));
  if (!count) { return std::move(count).error(); }
  text.resize(*count);
  return text;
}

/// Returns true if `text` is a line written by `holder_line`. Also returns true for an empty text and for zero bytes, which a power failure
/// can leave in a lock file.
bool is_own_content(std::string_view text) {
  constexpr std::string_view time = " since 2026-01-02T03:04:05Z";
  if (text.size() > longest_holder_line) { return false; }
  if (text.find_first_not_of('\0') == std::string_view::npos) { return true; }
  const auto begins_like_ours = text.starts_with("process ") && text.find(" on host ") != std::string_view::npos;
  return begins_like_ours && text.size() > time.size() && text.substr(text.size() - time.size()).starts_with(" since ") &&
         text.ends_with('Z');
}

status held_by_other(posix_file& file) {
  const auto beginning = read_beginning(file);
  const auto holder = beginning ? *beginning : std::string();
  const bool is_ours = holder.starts_with(fmt::format("process {} on host {} ", ::getpid(), this_host()));
  return {errc::failed_precondition,
          fmt::format("could not lock it: it is locked by {}{}; stop that process first, or choose another directory",
                      holder.empty() ? "a process that has not yet written its id" : holder, is_ours ? " (this process)" : ""),
          file.path()};
}

}  // namespace

result<std::unique_ptr<file_lock>> lock_posix_file(const std::string& path) {
  auto opened = open_regular_file(path, O_RDWR | O_CREAT, "could not open the lock file");
  if (!opened) { return std::move(opened).error(); }
  auto file = std::move(opened).value();
  if (retry_on_signal([&] { return ::flock(file->descriptor(), LOCK_EX | LOCK_NB); }) < 0) {
    if (errno == EWOULDBLOCK) { return held_by_other(*file); }
    return failure(errno, "could not lock it (flock)", path);
  }
  const auto before = read_beginning(*file);
  if (!before) { return before.error(); }
  if (!is_own_content(*before)) {
    return status(errc::failed_precondition,
                  "could not lock it: this file is not a lock file and was not changed; "
                  "move it away, or choose another directory",
                  path);
  }
  if (auto emptied = file->truncate(0); !emptied) { return std::move(emptied).error(); }
  const auto line = holder_line();
  if (auto named = file->write_at(0, std::as_bytes(std::span(line))); !named) { return std::move(named).error(); }
  return std::make_unique<posix_lock>(std::move(file));
}

}  // namespace stepwell::io
