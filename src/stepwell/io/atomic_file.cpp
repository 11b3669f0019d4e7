// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/atomic_file.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <atomic>
#include <utility>

namespace stepwell::io {
namespace {

constexpr std::string_view temporary_prefix = ".tmp-";
// Bytes between two starts of writeback. Large files are written to the disk in the background while they are appended to, and bypass the
// cache from the second step on.
constexpr std::uint64_t writeback_step = std::uint64_t{4} << 20;

/// Returns a path in the directory of `final_path` that is unique in this process. Truncates long names, because the system allows 255
/// bytes.
std::string next_temporary_path(const std::string& final_path) {
  static std::atomic<std::uint64_t> counter = 0;
  const auto name = fmt::format("{}{}-{}-{}", temporary_prefix, ::getpid(), ++counter, base_name(final_path).substr(0, 200));
  return join_path(parent_directory(final_path), name);
}

}  // namespace

bool is_temporary_name(std::string_view name) noexcept { return name.starts_with(temporary_prefix); }

std::string_view final_name_of_temporary(std::string_view name) noexcept {
  if (!is_temporary_name(name)) { return {}; }
  name.remove_prefix(temporary_prefix.size());
  for (int number = 0; number < 2; ++number) {  // the process id, then the counter
    const auto end = name.find_first_not_of("0123456789");
    if (end == 0 || end == std::string_view::npos || name[end] != '-') { return {}; }
    name.remove_prefix(end + 1);
  }
  return name;
}

result<atomic_file> atomic_file::create(file_system& files, std::string final_path) {
  // A killed process with the same process id may have left files with some of these names.
  for (int attempt = 1;; ++attempt) {
    auto path = next_temporary_path(final_path);
    auto opened = files.open(path, open_mode::create_new);
    if (opened) { return atomic_file(files, std::move(final_path), std::move(path), std::move(opened).value()); }
    if (opened.error().code != errc::already_exists || attempt == 1000) { return std::move(opened).error(); }
  }
}

atomic_file::atomic_file(file_system& files, std::string final_path, std::string temporary_path, std::unique_ptr<file> content)
    : files_(&files), final_path_(std::move(final_path)), temporary_path_(std::move(temporary_path)), content_(std::move(content)) {}

atomic_file::atomic_file(atomic_file&& other) noexcept
    : files_(other.files_), final_path_(std::move(other.final_path_)), temporary_path_(std::move(other.temporary_path_)),
      content_(std::move(other.content_)), size_(other.size_), handed_over_(other.handed_over_),
      stage_(std::exchange(other.stage_, stage::gone)), reason_(std::move(other.reason_)) {}

atomic_file::~atomic_file() { discard(); }

result<void> atomic_file::fail(status reason) {
  stage_ = stage::failed;
  reason_ = std::move(reason);
  return reason_;
}

result<void> atomic_file::append(std::span<const std::byte> bytes) {
  if (stage_ == stage::failed) { return reason_; }
  if (stage_ != stage::open) { return status(errc::failed_precondition, "could not append: the file is already finished", final_path_); }
  if (auto written = content_->write_at(size_, bytes); !written) { return fail(std::move(written).error()); }
  size_ += bytes.size();
  if (size_ - handed_over_ >= writeback_step) {
    content_->start_writeback(handed_over_, size_ - handed_over_);
    handed_over_ = size_;
    content_->bypass_cache();
  }
  return {};
}

result<void> atomic_file::finish() {
  if (stage_ == stage::failed) { return reason_; }
  if (stage_ != stage::open) { return {}; }
  if (auto synced = content_->sync(); !synced) { return fail(std::move(synced).error()); }
  if (auto closed = content_->close(); !closed) { return fail(std::move(closed).error()); }
  stage_ = stage::finished;
  return {};
}

result<void> atomic_file::rename_into_place() {
  if (stage_ == stage::failed) { return reason_; }
  if (stage_ != stage::finished) {
    return status(errc::failed_precondition, "could not rename the temporary file: call finish first, and rename it only once",
                  final_path_);
  }
  if (auto renamed = files_->rename(temporary_path_, final_path_); !renamed) { return fail(std::move(renamed).error()); }
  stage_ = stage::gone;
  return {};
}

result<void> atomic_file::publish() {
  if (auto finished = finish(); !finished) { return finished; }
  if (auto renamed = rename_into_place(); !renamed) { return renamed; }
  return files_->sync_directory(parent_directory(final_path_));
}

void atomic_file::discard() noexcept {
  if (std::exchange(stage_, stage::gone) == stage::gone) { return; }
  content_.reset();
  if (const auto removed = files_->remove(temporary_path_); !removed) {
    log_warning(removed.error().to_string() + "; it is a temporary file and is no longer needed");
  }
}

result<void> write_file_atomically(file_system& files, const std::string& path, std::span<const std::byte> bytes) {
  auto made = atomic_file::create(files, path);
  if (!made) { return std::move(made).error(); }
  if (auto written = made->append(bytes); !written) { return written; }
  return made->publish();
}

}  // namespace stepwell::io
