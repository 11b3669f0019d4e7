// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/log.hpp"
#include "stepwell/io/detail/failure.hpp"
#include "stepwell/io/detail/posix_file.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/path.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace stepwell::io {
namespace {

struct open_words {
  int flags;
  std::string_view tried;
};

open_words words_of(open_mode mode) noexcept {
  switch (mode) {
    case open_mode::read: return {O_RDONLY, "could not open it for reading"};
    case open_mode::create_new: return {O_RDWR | O_CREAT | O_EXCL, "could not create it as a new file"};
    case open_mode::overwrite: return {O_RDWR | O_CREAT, "could not open it for overwriting"};
    case open_mode::append: return {O_RDWR | O_CREAT, "could not open it for appending"};
  }
  return {O_RDONLY, "could not open it"};
}

/// Creates one directory. Returns false if it exists already.
result<bool> create_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) { return true; }
  const int reason = errno;
  struct ::stat about{};
  if (reason == EEXIST && ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) { return false; }
  return failure(reason, "could not create this directory", path);
}

class posix final : public file_system {
public:
  result<std::unique_ptr<file>> open(const std::string& path, open_mode mode) override {
    const auto [flags, tried] = words_of(mode);
    auto opened = open_regular_file(path, flags, tried);
    if (!opened) { return std::move(opened).error(); }
    if (mode == open_mode::overwrite) {  // not with O_TRUNC: the file must first be known to be a regular file
      if (auto emptied = (*opened)->truncate(0); !emptied) { return std::move(emptied).error(); }
    }
    return std::unique_ptr<file>(std::move(opened).value());
  }

  result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) < 0) { return failure(errno, "could not rename " + from + " to this path", to); }
    return {};
  }

  result<void> remove(const std::string& path) override {
    if (std::remove(path.c_str()) < 0) { return failure(errno, "could not remove it", path); }
    return {};
  }

  result<void> sync_directory(const std::string& directory) override {
    const int descriptor = retry_on_signal([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor < 0) { return failure(errno, "could not open this directory to sync it", directory); }
    const int synced = retry_on_signal([&] { return ::fsync(descriptor); });
    const int reason = errno;
    ::close(descriptor);
    // Some file systems do not support the sync of a directory and return EINVAL. Their names are durable without it, or cannot be made
    // durable.
    if (synced < 0 && reason != EINVAL) {
      return failure(reason, "could not sync this directory, a new or renamed file in it may be lost", directory);
    }
    return {};
  }

  result<void> create_directories(const std::string& directory) override {
    for (std::size_t end = directory.find_first_not_of('/'); end < directory.size(); ++end) {
      end = std::min(directory.find('/', end), directory.size());
      if (directory[end - 1] == '/') { continue; }
      const auto path = directory.substr(0, end);
      const auto made = create_directory(path);
      if (!made) { return made.error(); }
      if (*made) {
        if (auto kept = sync_parent(path); !kept) { return kept; }
      }
    }
    return {};
  }

  result<std::vector<std::string>> list(const std::string& directory) override {
    ::DIR* const stream = ::opendir(directory.c_str());
    if (stream == nullptr) { return failure(errno, "could not list this directory", directory); }
    std::vector<std::string> names;
    errno = 0;
    while (const ::dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") { names.emplace_back(name); }
      errno = 0;
    }
    const int reason = errno;
    ::closedir(stream);
    if (reason != 0) { return failure(reason, "could not list all of this directory", directory); }
    std::ranges::sort(names);
    return names;
  }

  result<file_info> stat(const std::string& path) override {
    struct ::stat about{};
    if (::stat(path.c_str(), &about) < 0) { return failure(errno, "could not get its type and size (stat)", path); }
    const auto since = std::chrono::seconds(about.st_mtim.tv_sec) + std::chrono::nanoseconds(about.st_mtim.tv_nsec);
    return file_info{static_cast<std::uint64_t>(about.st_size),
                     clock::wall_time(std::chrono::duration_cast<clock::wall_time::duration>(since)), S_ISDIR(about.st_mode)};
  }

  result<std::string> canonical(const std::string& path) override {
    const std::unique_ptr<char, void (*)(void*)> found(::realpath(path.c_str(), nullptr), &std::free);
    if (!found) { return failure(errno, "could not resolve this path", path); }
    return std::string(found.get());
  }

  result<std::unique_ptr<file_lock>> lock(const std::string& path) override { return lock_posix_file(path); }

private:
  /// Syncs the parent directory of `path`. Logs a warning and succeeds if permission is denied, because a parent directory may be writable
  /// but not readable.
  result<void> sync_parent(const std::string& path) {
    auto synced = sync_directory(parent_directory(path));
    if (!synced && synced.error().code == errc::permission_denied) {
      log_warning(synced.error().to_string());
      return {};
    }
    return synced;
  }
};

}  // namespace

result<bool> file_system::exists(const std::string& path) {
  const auto found = stat(path);
  if (found) { return true; }
  if (found.error().code == errc::not_found) { return false; }
  return found.error();
}

std::shared_ptr<file_system> posix_file_system() {
  static const auto instance = std::make_shared<posix>();
  return instance;
}

}  // namespace stepwell::io
