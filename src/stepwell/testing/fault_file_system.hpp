// SPDX-License-Identifier: Apache-2.0
//
// A file system that fails on demand, for your own tests: it counts operations, and fails, cuts, delays or crashes at an operation that the
// test selects. It passes all other operations on to a real file system. Sessions, savers, readers and writers take it as the option
// `file_system`. The umbrella header does not include this header.
//
//     const auto files = std::make_shared<stepwell::testing::fault_file_system>();
//     files->inject({.kind = file_operation::sync, .path_contains = ".index", .errno_value = EIO});  // the next such sync fails
//     files->crash_at(7);                                               // the machine stops within the seventh operation
//     files->before_each([&](const file_event& now) { gate.wait(); });  // a slow disk, without sleeping
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/io/file_system.hpp"

#include <stdlib.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::testing {

/// The kinds of operations that are counted and can fail. The first seven are those of an open file, the others those of names.
enum class file_operation {
  open,
  read,
  write,
  sync,
  size,
  truncate,
  close,
  rename,  ///< Its path is the new name.
  remove,
  sync_directory,
  create_directories,
  create_directory,
  list,
  stat,
  canonical,
  lock
};

/// One operation.
struct file_event {
  std::uint64_t number;  ///< Its number among all operations, from 1.
  file_operation kind;
  std::string path;
};

/// A failure to inject: the `nth` operation of this kind on such a path, counted from 1 since the injection.
struct file_fault {
  std::optional<file_operation> kind = std::nullopt;  ///< Empty: any kind.
  std::string path_contains = {};                     ///< A part of the path. Empty: any path.
  std::uint64_t nth = 1;
  int errno_value = EIO;                                    ///< The reason of the failure, for example ENOSPC.
  std::optional<std::size_t> bytes_written = std::nullopt;  ///< Bytes that a failing write writes first. Empty: none.
  bool from_then_on = false;                                ///< True: all later operations that match fail, too.
};

/// A file system that adds failures to those of `base`. Its files share its state, and may outlive it.
/// @threads Any, like the wrapped file system.
/// @cost    Keeps the history of all operations in memory.
class fault_file_system final : public io::file_system {
public:
  /// Passes operations on to `base`.
  explicit fault_file_system(std::shared_ptr<io::file_system> base = io::posix_file_system())
      : state_(std::make_shared<state>()), base_(std::move(base)) {
    state_->base = base_;
  }

  /// Adds a failure. Several failures are independent of each other; each counts the operations that match it.
  void inject(file_fault what) {
    const std::lock_guard lock(state_->mutex);
    state_->faults.push_back({std::move(what), 0});
  }
  /// Stops the machine within operation `number` (from 1, over all operations). A write writes half of its bytes, any
  /// other operation does nothing, and all later operations fail. No cleanup runs: the next process finds the current
  /// content of the disk.
  /// To continue after it, as the next process does, use another file system.
  void crash_at(std::uint64_t number) { set_crash(number, false, false); }
  /// Like crash_at(), but unsynced bytes are lost: each file with unsynced writes is cut to its size at its last sync.
  void lose_power_at(std::uint64_t number) { set_crash(number, true, false); }
  /// Like lose_power_at(), but unsynced names are lost, too: files that were created, renamed or removed since the last sync of their
  /// directory have their old names again. Directories keep their names.
  /// @pre The directories are on the file system of the directory for temporary files.
  void lose_power_and_names_at(std::uint64_t number) { set_crash(number, true, true); }
  /// Calls `watcher` before each operation, without holding a lock. `watcher` may block.
  void before_each(std::function<void(const file_event&)> watcher) {
    const std::lock_guard lock(state_->mutex);
    state_->watcher = std::move(watcher);
  }

  /// Reports for all files that their bytes are not in the cache of the system.
  void report_uncached() { state_->reports_uncached = true; }
  /// Returns the number of calls of `read_uncached`, which also count as operations of the kind `read`.
  [[nodiscard]] std::uint64_t uncached_reads() const { return state_->uncached_reads; }

  /// Returns true after the operation of `crash_at` or one of its relatives.
  [[nodiscard]] bool has_crashed() const {
    const std::lock_guard lock(state_->mutex);
    return state_->has_crashed;
  }
  /// Returns the number of operations so far.
  [[nodiscard]] std::uint64_t operations() const { return history().size(); }
  [[nodiscard]] std::uint64_t operations(file_operation kind) const {
    std::uint64_t count = 0;
    for (const auto& entry : history()) { count += entry.kind == kind ? 1U : 0U; }
    return count;
  }
  /// Returns all operations so far, in their order.
  [[nodiscard]] std::vector<file_event> history() const {
    const std::lock_guard lock(state_->mutex);
    return state_->history;
  }

  result<std::unique_ptr<io::file>> open(const std::string& path, io::open_mode mode) override {
    if (auto bad = state_->meet(file_operation::open, path)) { return bad->reason; }
    const bool is_new = mode != io::open_mode::read && !std::filesystem::exists(std::filesystem::symlink_status(path));
    auto opened = base_->open(path, mode);
    if (!opened) { return opened; }
    if (is_new) {
      state_->note_name(path, path, [path] { std::filesystem::remove(path); });
    }
    auto track = mode == io::open_mode::read ? nullptr : state_->track(path, **opened);
    return std::make_unique<fault_file>(path, std::move(opened).value(), state_, std::move(track));
  }
  result<void> rename(const std::string& from, const std::string& to) override {
    if (auto bad = state_->meet(file_operation::rename, to)) { return bad->reason; }
    const auto old = state_->link_to(to);
    auto renamed = base_->rename(from, to);
    if (!renamed) { return renamed; }
    state_->renamed(from, to);
    state_->note_name(to, from, [=] {
      state::restore_name(to, from);
      if (!old.empty()) { state::restore_name(old, to); }
    });
    return renamed;
  }
  result<void> remove(const std::string& path) override {
    if (auto bad = state_->meet(file_operation::remove, path)) { return bad->reason; }
    const auto old = state_->link_to(path);
    auto removed = base_->remove(path);
    if (!removed) { return removed; }
    state_->removed(path);
    if (!old.empty()) {
      state_->note_name(path, path, [=] { state::restore_name(old, path); });
    }
    return removed;
  }
  result<void> sync_directory(const std::string& directory) override {
    if (auto bad = state_->meet(file_operation::sync_directory, directory)) { return bad->reason; }
    auto synced = base_->sync_directory(directory);
    if (synced) { state_->synced_names(directory); }
    return synced;
  }
  result<void> create_directories(const std::string& directory) override {
    if (auto bad = state_->meet(file_operation::create_directories, directory)) { return bad->reason; }
    return base_->create_directories(directory);
  }
  result<void> create_directory(const std::string& path) override {
    if (auto bad = state_->meet(file_operation::create_directory, path)) { return bad->reason; }
    return base_->create_directory(path);
  }
  result<std::vector<std::string>> list(const std::string& directory) override {
    if (auto bad = state_->meet(file_operation::list, directory)) { return bad->reason; }
    return base_->list(directory);
  }
  result<io::file_info> stat(const std::string& path) override {
    if (auto bad = state_->meet(file_operation::stat, path)) { return bad->reason; }
    return base_->stat(path);
  }
  result<std::string> canonical(const std::string& path) override {
    if (auto bad = state_->meet(file_operation::canonical, path)) { return bad->reason; }
    return base_->canonical(path);
  }
  result<std::unique_ptr<io::file_lock>> lock(const std::string& path) override {
    if (auto bad = state_->meet(file_operation::lock, path)) { return bad->reason; }
    return base_->lock(path);
  }

private:
  /// The part of a file that is known to be durable.
  struct durability {
    std::string path;
    std::uint64_t synced_size = 0;
    bool is_dirty = false;
  };

  /// An operation that must fail: the reason, and for a write the number of bytes written first.
  struct refusal {
    status reason;
    std::size_t bytes_written = 0;
  };

  struct injected {
    file_fault what;
    std::uint64_t met = 0;
  };

  struct state {
    std::optional<refusal> meet(file_operation kind, const std::string& path, std::size_t bytes = 0) {
      std::unique_lock lock(mutex);
      const file_event now{history.size() + 1, kind, path};
      history.push_back(now);
      if (const auto watching = watcher) {
        lock.unlock();
        watching(now);
        lock.lock();
      }
      if (has_crashed) { return refusal{status_from_errno(EIO, "the machine has stopped (a test)", path)}; }
      if (now.number == crash_number) { return crash(path, bytes); }
      return first_fault(now, bytes);
    }

    refusal crash(const std::string& path, std::size_t bytes) {
      has_crashed = true;
      if (loses_unsynced) { cut_unsynced(); }
      for (; !unsynced_names.empty(); unsynced_names.pop_back()) { unsynced_names.back().undo(); }
      return {status_from_errno(EIO, "the machine stops here (a test)", path), loses_unsynced ? 0 : bytes / 2};
    }

    std::optional<refusal> first_fault(const file_event& now, std::size_t bytes) {
      for (auto& [what, met] : faults) {
        const bool matches = (!what.kind || *what.kind == now.kind) && now.path.find(what.path_contains) != std::string::npos;
        if (!matches || (++met != what.nth && !(what.from_then_on && met > what.nth))) { continue; }
        return refusal{status_from_errno(what.errno_value, "injected by a test", now.path),
                       std::min(what.bytes_written.value_or(0), bytes)};
      }
      return std::nullopt;
    }

    void cut_unsynced() {
      for (const auto& entry : tracked) {
        if (!entry->is_dirty) { continue; }
        if (auto opened = base->open(entry->path, io::open_mode::append)) { static_cast<void>((*opened)->truncate(entry->synced_size)); }
      }
    }

    std::shared_ptr<durability> track(const std::string& path, io::file& opened) {
      const auto size = opened.size();
      removed(path);
      const std::lock_guard lock(mutex);
      return tracked.emplace_back(std::make_shared<durability>(durability{path, size ? *size : 0, false}));
    }
    void removed(const std::string& path) {
      const std::lock_guard lock(mutex);
      std::erase_if(tracked, [&](const auto& entry) { return entry->path == path; });
    }
    void renamed(const std::string& from, const std::string& to) {
      removed(to);
      const std::lock_guard lock(mutex);
      for (auto& entry : tracked) {
        if (entry->path == from) { entry->path = to; }
        if (entry->path.starts_with(from + "/")) { entry->path.replace(0, from.size(), to); }
      }
    }

    ~state() {
      if (!links.empty()) { std::filesystem::remove_all(links); }
    }

    /// Returns another name of the file, with which a removed name can be restored. Empty if names are never lost, or if there is no file.
    [[nodiscard]] std::string link_to(const std::string& path) {
      const std::lock_guard lock(mutex);
      const auto about = std::filesystem::symlink_status(path);
      if (!loses_names || !std::filesystem::exists(about) || std::filesystem::is_directory(about)) { return {}; }
      if (links.empty()) {
        links = (std::filesystem::temp_directory_path() / "stepwell-names-XXXXXX").string();
        if (::mkdtemp(links.data()) == nullptr) { throw unknown_error("mkdtemp failed"); }
      }
      auto name = links + "/" + std::to_string(++link_count);
      std::filesystem::create_hard_link(path, name);
      return name;
    }
    /// Renames back, unless the directory of the old name was removed since.
    static void restore_name(const std::string& from, const std::string& to) {
      if (std::filesystem::exists(io::parent_directory(to))) { std::filesystem::rename(from, to); }
    }
    void note_name(const std::string& path, const std::string& old_path, std::function<void()> undo) {
      const std::lock_guard lock(mutex);
      if (!loses_names || has_crashed) { return; }
      unsynced_names.push_back({io::parent_directory(path), io::parent_directory(old_path), std::move(undo)});
    }
    void synced_names(const std::string& directory) {
      const std::lock_guard lock(mutex);
      std::erase_if(unsynced_names, [&](const auto& entry) { return entry.directory == directory || entry.old_directory == directory; });
    }

    /// A change of a name that is not durable yet. The sync of either directory makes it durable.
    struct name_change {
      std::string directory;
      std::string old_directory;
      std::function<void()> undo;
    };

    mutable std::mutex mutex;
    std::shared_ptr<io::file_system> base;
    std::vector<name_change> unsynced_names;  // oldest first
    std::string links;                        // directory of the second names
    std::uint64_t link_count = 0;
    bool loses_names = false;
    std::vector<file_event> history;
    std::vector<injected> faults;
    std::vector<std::shared_ptr<durability>> tracked;
    std::function<void(const file_event&)> watcher;
    std::uint64_t crash_number = 0;
    bool loses_unsynced = false;
    bool has_crashed = false;
    std::atomic<bool> reports_uncached = false;
    std::atomic<std::uint64_t> uncached_reads = 0;
  };

  class fault_file final : public io::file {
  public:
    fault_file(std::string path, std::unique_ptr<io::file> base, std::shared_ptr<state> shared, std::shared_ptr<durability> track)
        : file(std::move(path)), base_(std::move(base)), state_(std::move(shared)), track_(std::move(track)) {}

    result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
      const auto bad = state_->meet(file_operation::write, path(), bytes.size());
      set_dirty(true);
      if (!bad) { return base_->write_at(offset, bytes); }
      static_cast<void>(base_->write_at(offset, bytes.first(bad->bytes_written)));
      return bad->reason;
    }
    result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override {
      if (auto bad = state_->meet(file_operation::read, path())) { return bad->reason; }
      return base_->read_at(offset, into);
    }
    result<std::size_t> read_uncached(std::uint64_t offset, std::span<std::byte> into) override {
      ++state_->uncached_reads;
      if (auto bad = state_->meet(file_operation::read, path())) { return bad->reason; }
      return base_->read_uncached(offset, into);
    }
    bool is_cached(std::uint64_t offset, std::uint64_t size) noexcept override {
      return !state_->reports_uncached && base_->is_cached(offset, size);
    }
    void start_reading(std::uint64_t offset, std::uint64_t size) noexcept override { base_->start_reading(offset, size); }
    std::uint64_t skip_hole(std::uint64_t offset) noexcept override { return base_->skip_hole(offset); }
    result<void> sync() override {
      if (failed_sync_) { return *failed_sync_; }
      if (auto bad = state_->meet(file_operation::sync, path())) {
        failed_sync_ = bad->reason;
        return *failed_sync_;
      }
      if (const auto size = base_->size(); track_ && size) {
        const std::lock_guard lock(state_->mutex);
        *track_ = {track_->path, *size, false};
      }
      return base_->sync();
    }
    void start_writeback(std::uint64_t offset, std::uint64_t size) noexcept override { base_->start_writeback(offset, size); }
    void bypass_cache() noexcept override { base_->bypass_cache(); }
    result<std::uint64_t> size() override {
      if (auto bad = state_->meet(file_operation::size, path())) { return bad->reason; }
      return base_->size();
    }
    result<void> truncate(std::uint64_t size) override {
      if (auto bad = state_->meet(file_operation::truncate, path())) { return bad->reason; }
      set_dirty(true);
      return base_->truncate(size);
    }
    /// Closes the file even if a failure is injected, as the operating system does.
    result<void> close() override {
      if (std::exchange(is_closed_, true)) { return {}; }
      const auto bad = state_->meet(file_operation::close, path());
      auto closed = base_->close();
      if (bad) { return bad->reason; }
      return closed;
    }

  private:
    void set_dirty(bool dirty) {
      if (!track_) { return; }
      const std::lock_guard lock(state_->mutex);
      track_->is_dirty = dirty;
    }

    std::unique_ptr<io::file> base_;
    std::shared_ptr<state> state_;
    std::shared_ptr<durability> track_;
    std::optional<status> failed_sync_;
    bool is_closed_ = false;
  };

  void set_crash(std::uint64_t number, bool loses_unsynced, bool loses_names) {
    const std::lock_guard lock(state_->mutex);
    state_->crash_number = number;
    state_->loses_unsynced = loses_unsynced;
    state_->loses_names = loses_names;
  }

  std::shared_ptr<state> state_;
  std::shared_ptr<io::file_system> base_;
};

}  // namespace stepwell::testing
