// SPDX-License-Identifier: Apache-2.0
//
// The file system of this machine: files by pread and pwrite, and locks by flock.
#include "stepwell/base/detail/host_name.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/owner_process.hpp"
#include "stepwell/base/detail/platform.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/io/detail/lock_content.hpp"
#include "stepwell/io/detail/posix_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

namespace stepwell::io {
namespace {

namespace platform = stepwell::detail::platform;

/// A writer to a file whose descriptor another object owns. Complete pages bypass the cache of the system, which would otherwise copy the
/// bytes and allocate memory for them without yielding the processor. Pages are written directly if their memory is page-aligned, and from
/// a page-aligned copy otherwise. The bytes before the first and after the last complete page go through the cache. All bytes go through
/// the cache if the file system rejects uncached writes.
/// @threads All functions may be called from any thread. Writes that need a copy run one at a time.
class uncached_writer {
public:
  /// Returns a writer for the file of `cached`. Returns null if the system or the file system lacks uncached writes, or if memory is
  /// exhausted.
  /// @param cached A descriptor that is open for writing. It must stay open during the lifetime of the writer.
  static std::unique_ptr<uncached_writer> open(int cached) noexcept {
    page_memory aligned(static_cast<std::byte*>(std::aligned_alloc(page_size, most_copied)), &std::free);
    const int uncached = aligned ? platform::open_uncached(cached, O_WRONLY) : -1;
    if (uncached < 0) { return nullptr; }
    auto* const made = new (std::nothrow) uncached_writer(cached, uncached, std::move(aligned));
    if (made == nullptr) { ::close(uncached); }
    return std::unique_ptr<uncached_writer>(made);
  }
  uncached_writer(const uncached_writer&) = delete;
  uncached_writer& operator=(const uncached_writer&) = delete;
  ~uncached_writer() { ::close(uncached_); }

  /// Writes like pwrite. Returns the number of bytes written, which may be less than `bytes.size()`. Returns -1 and sets errno on failure.
  ssize_t write_some(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    const auto into_page = static_cast<std::size_t>(offset % page_size);
    if (into_page != 0) { return write_cached(offset, bytes.first(std::min(bytes.size(), page_size - into_page))); }
    if (bytes.size() < page_size) { return write_cached(offset, bytes); }
    const auto pages = bytes.first(bytes.size() / page_size * page_size);
    if (reinterpret_cast<std::uintptr_t>(pages.data()) % page_size == 0) { return write_pages(offset, pages); }
    const auto copied = pages.first(std::min(pages.size(), most_copied));
    const stepwell::detail::mutex_lock lock(mutex_);
    std::memcpy(aligned_.get(), copied.data(), copied.size());
    return write_pages(offset, {aligned_.get(), copied.size()});
  }

private:
  using page_memory = std::unique_ptr<std::byte[], void (*)(void*)>;
  static constexpr std::size_t most_copied = std::size_t{4} << 20;  // size in bytes of the aligned buffer

  uncached_writer(int cached, int uncached, page_memory aligned) noexcept
      : cached_(cached), uncached_(uncached), aligned_(std::move(aligned)) {}

  ssize_t write_cached(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept {
    return ::pwrite(cached_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  }

  ssize_t write_pages(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    if (is_refused_) { return write_cached(offset, bytes); }
    const auto written = ::pwrite(uncached_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written >= 0 || errno != EINVAL) { return written; }
    is_refused_ = true;  // the file system requires a larger alignment, or lacks uncached writes
    return write_cached(offset, bytes);
  }

  int cached_;
  int uncached_;
  stepwell::detail::checked_mutex mutex_;
  page_memory aligned_ STEPWELL_GUARDED_BY(mutex_);
  std::atomic<bool> is_refused_ = false;
};

/// A reader of a file whose descriptor another object owns. Reads pages directly into page-aligned memory, without the cache of the system.
/// Reads through the cache otherwise, and if the file system rejects uncached reads.
/// @threads All functions may be called from any thread.
class uncached_reader {
public:
  uncached_reader() = default;
  uncached_reader(const uncached_reader&) = delete;
  uncached_reader& operator=(const uncached_reader&) = delete;
  ~uncached_reader() { close(); }

  /// Reads like pread. Opens the second descriptor of the file of `cached` at the first call.
  ssize_t read_some(int cached, std::uint64_t offset, std::span<std::byte> into) {
    const auto places = offset | reinterpret_cast<std::uintptr_t>(into.data()) | into.size();
    const int uncached = places % page_size == 0 ? opened(cached) : -1;
    if (uncached >= 0) {
      const auto moved = ::pread(uncached, into.data(), into.size(), static_cast<off_t>(offset));
      if (moved >= 0 || errno != EINVAL) { return moved; }
      is_refused_ = true;  // the file system requires a larger alignment, or lacks uncached reads
    }
    return ::pread(cached, into.data(), into.size(), static_cast<off_t>(offset));
  }

  /// Closes the second descriptor. @pre No other call runs.
  void close() noexcept {
    const int uncached = uncached_.exchange(-1);
    if (uncached >= 0) { ::close(uncached); }
  }

private:
  static constexpr int not_tried = -2;

  /// Returns the second descriptor, or -1 if there is none.
  int opened(int cached) {
    if (is_refused_) { return -1; }
    int known = uncached_;
    if (known != not_tried) { return known; }
    const int made = platform::open_uncached(cached, O_RDONLY);
    if (uncached_.compare_exchange_strong(known, made)) { return made; }
    if (made >= 0) { ::close(made); }  // another thread was faster
    return known;
  }

  std::atomic<int> uncached_ = not_tried;
  std::atomic<bool> is_refused_ = false;
};

/// A file that owns a POSIX descriptor.
class posix_file final : public file {
public:
  posix_file(std::string path, int descriptor) : file(std::move(path)), descriptor_(descriptor) {}
  ~posix_file() override {
    if (const auto closed = close(); !closed) { log_error(closed.error().to_string()); }
  }

  result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto moved = retry_on_signal([&] { return write_some(offset + done, bytes.subspan(done)); });
      if (moved <= 0) {
        const auto tried = fmt::format("could not write {} bytes at offset {} ({} written)", bytes.size(), offset, done);
        return status_from_errno(moved < 0 ? errno : ENOSPC, tried, path());
      }
      done += static_cast<std::size_t>(moved);
    }
    return {};
  }

  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
    return read_with(offset, into, [this](std::uint64_t at, std::span<std::byte> rest) {
      return ::pread(descriptor_, rest.data(), rest.size(), static_cast<off_t>(at));
    });
  }

  result<std::size_t> read_uncached(std::uint64_t offset, std::span<std::byte> into) override {
    return read_with(offset, into,
                     [this](std::uint64_t at, std::span<std::byte> rest) { return from_disk_.read_some(descriptor_, at, rest); });
  }

  bool is_cached(std::uint64_t offset, std::uint64_t size) noexcept override {
    return platform::is_mostly_cached(descriptor_, offset, size);
  }

  void start_reading(std::uint64_t offset, std::uint64_t size) noexcept override { platform::start_reading(descriptor_, offset, size); }

  std::uint64_t skip_hole(std::uint64_t offset) noexcept override { return platform::skip_hole(descriptor_, offset); }

  result<void> sync() override {
    const stepwell::detail::mutex_lock lock(sync_mutex_);
    if (sync_failure_) { return *sync_failure_; }
    if (retry_on_signal([&] { return platform::sync_to_disk(descriptor_); }) < 0) {
      sync_failure_ = status_from_errno(errno, "could not sync it to the disk (fsync), written data may be lost", path());
      return *sync_failure_;
    }
    return {};
  }

  void start_writeback(std::uint64_t offset, std::uint64_t size) noexcept override { platform::start_writeback(descriptor_, offset, size); }

  void bypass_cache() noexcept override {
    if (!past_cache_) { past_cache_ = uncached_writer::open(descriptor_); }
  }

  result<std::uint64_t> size() override {
    struct ::stat about{};
    if (::fstat(descriptor_, &about) < 0) { return status_from_errno(errno, "could not get its size", path()); }
    return static_cast<std::uint64_t>(about.st_size);
  }

  result<void> truncate(std::uint64_t size) override {
    if (retry_on_signal([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }) < 0) {
      return status_from_errno(errno, fmt::format("could not set its size to {} bytes", size), path());
    }
    return {};
  }

  result<void> close() override {
    past_cache_.reset();
    from_disk_.close();
    const int descriptor = std::exchange(descriptor_, -1);
    // Linux closes the descriptor even if a signal interrupts the call, so the call must not be repeated.
    if (descriptor >= 0 && ::close(descriptor) < 0 && errno != EINTR) {
      return status_from_errno(errno, "could not close it without an error, data written before may be lost", path());
    }
    return {};
  }

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

private:
  /// Maximum number of bytes per system call. Linux transfers at most 0x7ffff000 bytes per call.
  static constexpr std::size_t most_at_once = std::size_t{1} << 30;

  /// Reads all bytes up to the end of the file. `read_some` reads like pread.
  template<class Read>
  result<std::size_t> read_with(std::uint64_t offset, std::span<std::byte> into, const Read& read_some) const {
    std::size_t done = 0;
    while (done < into.size()) {
      const auto rest = into.subspan(done, std::min(into.size() - done, most_at_once));
      const auto moved = retry_on_signal([&] { return read_some(offset + done, rest); });
      if (moved < 0) { return status_from_errno(errno, fmt::format("could not read {} bytes at offset {}", into.size(), offset), path()); }
      if (moved == 0) { break; }
      done += static_cast<std::size_t>(moved);
    }
    return done;
  }

  ssize_t write_some(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    bytes = bytes.first(std::min(bytes.size(), most_at_once));
    if (past_cache_) { return past_cache_->write_some(offset, bytes); }
    return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  }

  int descriptor_;
  std::unique_ptr<uncached_writer> past_cache_;
  uncached_reader from_disk_;
  stepwell::detail::checked_mutex sync_mutex_;
  std::optional<status> sync_failure_ STEPWELL_GUARDED_BY(sync_mutex_);
};

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
  return status_from_errno(errno_value, tried, path);
}

/// Opens the regular file `path` with the flags `flags` of open(2). Never blocks. Rejects pipes, devices, sockets and directories, and also
/// rejects symbolic links unless the file is opened for reading only. `tried` names the operation in messages.
/// @errors `invalid_argument` if `path` is rejected. Any error of the system.
result<std::unique_ptr<posix_file>> open_regular_file(const std::string& path, int flags, std::string_view tried) {
  const bool is_for_reading = (flags & O_ACCMODE) == O_RDONLY;
  const int all = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (is_for_reading ? 0 : O_NOFOLLOW);
  const int descriptor = retry_on_signal([&] { return ::open(path.c_str(), all, 0666); });
  if (descriptor < 0) { return open_failure(errno, is_for_reading, tried, path); }
  auto opened = std::make_unique<posix_file>(path, descriptor);
  struct ::stat about{};
  if (::fstat(descriptor, &about) < 0) { return status_from_errno(errno, tried, path); }
  if (S_ISDIR(about.st_mode)) { return status_from_errno(EISDIR, tried, path); }
  if (!S_ISREG(about.st_mode)) { return refused(tried, is_special, path); }
  return opened;
}

class posix_lock final : public file_lock {
public:
  explicit posix_lock(std::unique_ptr<posix_file> held) : held_(std::move(held)) {}
  ~posix_lock() override {
    if (!owner_.is_this_process()) { return; }  // a child shares the lock of its parent
    static_cast<void>(held_->truncate(0));      // the file names no holder after the release
    ::flock(held_->descriptor(), LOCK_UN);      // closing the file would not release the lock while a child has it open
  }

  [[nodiscard]] bool is_at(const std::string& path) const noexcept override {
    struct ::stat ours{};
    struct ::stat there{};
    if (::fstat(held_->descriptor(), &ours) < 0) { return true; }
    if (::stat(path.c_str(), &there) < 0) { return errno != ENOENT && errno != ENOTDIR; }
    return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
  }

private:
  std::unique_ptr<posix_file> held_;
  stepwell::detail::owner_process owner_;
};

/// Returns the beginning of the file. For a lock file this is the complete content.
result<std::string> read_beginning(posix_file& file) {
  std::string text(detail::longest_lock_content + 1, '\0');
  auto count = file.read_at(0, std::as_writable_bytes(std::span(text)));
  if (!count) { return std::move(count).error(); }
  text.resize(*count);
  return text;
}

status held_by_other(posix_file& file) {
  const auto beginning = read_beginning(file);
  const auto holder = beginning ? *beginning : std::string();
  const auto content = detail::parse_lock_content(holder);
  const bool is_ours = content && content->pid == std::to_string(::getpid()) && content->host == stepwell::detail::host_name();
  return {errc::failed_precondition,
          is_ours ? fmt::format("could not lock it: it is locked by this process ({}); {}", holder, detail::close_first)
                  : fmt::format("could not lock it: it is locked by {}; stop that process first, or choose another directory",
                                holder.empty() ? "a process that has not yet written its id" : holder),
          file.path()};
}

/// Locks the file `path` as `file_system::lock` documents.
result<std::unique_ptr<file_lock>> lock_posix_file(const std::string& path) {
  auto opened = open_regular_file(path, O_RDWR | O_CREAT, "could not open the lock file");
  if (!opened) { return std::move(opened).error(); }
  auto file = std::move(opened).value();
  if (retry_on_signal([&] { return ::flock(file->descriptor(), LOCK_EX | LOCK_NB); }) < 0) {
    const int reason = errno;
    if (reason == EWOULDBLOCK) { return held_by_other(*file); }
    return status_from_errno(reason == EINVAL ? ENOLCK : reason, "could not lock it (flock)", path);  // EINVAL, too, means: no locks
  }
  const auto before = read_beginning(*file);
  if (!before) { return before.error(); }
  if (!detail::parse_lock_content(*before)) {
    return status(errc::failed_precondition,
                  "could not lock it: this file is not a lock file and was not changed; "
                  "move it away, or choose another directory",
                  path);
  }
  if (auto emptied = file->truncate(0); !emptied) { return std::move(emptied).error(); }
  const auto line = to_line(detail::own_lock_content());
  if (auto named = file->write_at(0, std::as_bytes(std::span(line))); !named) { return std::move(named).error(); }
  return std::make_unique<posix_lock>(std::move(file));
}

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
result<bool> create_if_missing(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) { return true; }
  const int reason = errno;
  struct ::stat about{};
  if (reason == EEXIST && ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) { return false; }
  return status_from_errno(reason, "could not create this directory", path);
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
    if (::rename(from.c_str(), to.c_str()) < 0) { return status_from_errno(errno, "could not rename " + from + " to this path", to); }
    return {};
  }

  result<void> remove(const std::string& path) override {
    if (std::remove(path.c_str()) < 0) { return status_from_errno(errno, "could not remove it", path); }
    return {};
  }

  result<void> sync_directory(const std::string& directory) override {
    const int descriptor = retry_on_signal([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor < 0) { return status_from_errno(errno, "could not open this directory to sync it", directory); }
    const int synced = retry_on_signal([&] { return platform::sync_to_disk(descriptor); });
    const int reason = errno;
    ::close(descriptor);
    // Some file systems do not support the sync of a directory and return EINVAL. Their names are durable without it, or cannot be made
    // durable.
    if (synced < 0 && reason != EINVAL) {
      return status_from_errno(reason, "could not sync this directory, a new or renamed file in it may be lost", directory);
    }
    return {};
  }

  result<void> create_directories(const std::string& directory) override {
    for (std::size_t end = directory.find_first_not_of('/'); end < directory.size(); ++end) {
      end = std::min(directory.find('/', end), directory.size());
      if (directory[end - 1] == '/') { continue; }
      const auto path = directory.substr(0, end);
      const auto made = create_if_missing(path);
      if (!made) { return made.error(); }
      if (*made) {
        if (auto kept = sync_parent(path); !kept) { return kept; }
      }
    }
    return {};
  }

  result<void> create_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) < 0) { return status_from_errno(errno, "could not create this directory", path); }
    return {};
  }

  result<std::vector<std::string>> list(const std::string& directory) override {
    ::DIR* const stream = ::opendir(directory.c_str());
    if (stream == nullptr) { return status_from_errno(errno, "could not list this directory", directory); }
    std::vector<std::string> names;
    errno = 0;
    while (const ::dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") { names.emplace_back(name); }
      errno = 0;
    }
    const int reason = errno;
    ::closedir(stream);
    if (reason != 0) { return status_from_errno(reason, "could not list all of this directory", directory); }
    std::ranges::sort(names);
    return names;
  }

  result<file_info> stat(const std::string& path) override {
    struct ::stat about{};
    if (::stat(path.c_str(), &about) < 0) { return status_from_errno(errno, "could not get its type and size (stat)", path); }
    const auto changed = platform::modification_time(about);
    constexpr std::int64_t latest = std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds::max()).count() - 1;
    const std::chrono::seconds seconds(std::clamp<std::int64_t>(changed.tv_sec, -latest, latest));  // file systems know later years
    const auto since = seconds + std::chrono::nanoseconds(changed.tv_nsec);
    return file_info{static_cast<std::uint64_t>(about.st_size),
                     clock::wall_time(std::chrono::duration_cast<clock::wall_time::duration>(since)), S_ISDIR(about.st_mode)};
  }

  result<std::string> canonical(const std::string& path) override {
    const std::unique_ptr<char, void (*)(void*)> found(::realpath(path.c_str(), nullptr), &std::free);
    if (!found) { return status_from_errno(errno, "could not resolve this path", path); }
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

std::unique_ptr<file> file_of_descriptor(std::string path, int descriptor) {
  return std::make_unique<posix_file>(std::move(path), descriptor);
}

result<void> file_system::create_directory(const std::string& path) {
  return status(errc::unimplemented, "this file system has no function that creates one directory", path);
}

result<bool> file_system::exists(const std::string& path) {
  const auto found = stat(path);
  if (found || found.error().code == errc::invalid_argument) { return true; }  // a loop of links exists, and opening it says so
  if (found.error().code == errc::not_found) { return false; }
  return found.error();
}

result<std::string> absolute_path(std::string_view path) {
  if (path.empty() || path.front() == '/') { return std::string(path); }
  std::error_code failure;
  const auto directory = std::filesystem::current_path(failure);
  if (failure) { return status_from_errno(failure.value(), "could not find the working directory of this process", std::string(path)); }
  while (path.starts_with("./")) { path.remove_prefix(std::min(path.find_first_not_of('/', 1), path.size())); }
  return path == "." || path.empty() ? directory.string() : join_path(directory.string(), path);
}

std::shared_ptr<file_system> posix_file_system() {
  static const auto instance = std::make_shared<posix>();
  return instance;
}

}  // namespace stepwell::io
