// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/fenced_directory.hpp"

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/owner_process.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/io/atomic_file.hpp"
#include "stepwell/io/detail/lock_content.hpp"
#include "stepwell/io/detail/read_file.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>

namespace stepwell::io {
namespace {

constexpr std::string_view writer_prefix = ".stepwell-writer-";
constexpr std::string_view written_prefix = "written-";  // records of the files that are open for writing

/// Returns N if `name` is that of the directory of writer N.
std::optional<std::uint64_t> writer_number(std::string_view name) noexcept {
  if (!name.starts_with(writer_prefix)) { return std::nullopt; }
  name.remove_prefix(writer_prefix.size());
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = failure == std::errc() && end == name.data() + name.size() && number > 0 && number < (std::uint64_t{1} << 62);
  return is_number ? std::optional(number) : std::nullopt;
}

std::uint64_t highest_writer(const std::vector<std::string>& names) noexcept {
  std::uint64_t highest = 0;
  for (const auto& name : names) { highest = std::max(highest, writer_number(name).value_or(0)); }
  return highest;
}

/// Returns a name that no other writer has: random digits, the process id, the time, the host.
std::string unique_name() {
  std::random_device source;
  auto owner = detail::own_lock_content();
  std::ranges::replace(owner.host, '/', '_');
  return fmt::format("{:08x}{:08x}.{}.{}.{}", source(), source(), owner.pid, owner.since, owner.host.substr(0, 150));
}

/// Returns the process that made `name` with `unique_name`.
detail::lock_content owner_in(std::string_view name) {
  std::vector<std::string> parts;
  for (int i = 0; i < 3; ++i) {
    const auto end = std::min(name.find('.'), name.size());
    parts.emplace_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return {.pid = parts[1], .host = std::string(name), .since = parts[2], .is_whole = true};
}

/// Returns `done`, but no error if a file has disappeared: an operation that an earlier writer has begun may still end.
result<void> unless_gone(result<void> done) { return !done && done.error().code == errc::not_found ? result<void>() : done; }

/// Calls `action` with the path of each file and, behind its content, of each directory below `path`, and with `path` itself.
result<void> for_each_below(file_system& files, const std::string& path,
                            function_ref<result<void>(const std::string& path, bool is_directory)> action) {
  const auto about = files.stat(path);
  if (!about) { return unless_gone(about.error()); }
  if (about->is_directory) {
    const auto names = files.list(path);
    if (!names) { return unless_gone(names.error()); }
    for (const auto& name : *names) {
      if (auto done = for_each_below(files, join_path(path, name), action); !done) { return done; }
    }
  }
  return unless_gone(action(path, about->is_directory));
}

/// Appends the content of the file `from` to the empty file `to`, and makes it durable.
result<void> copy_content(file_system& files, const std::string& from, file& to) {
  auto source = files.open(from, open_mode::read);
  if (!source) { return std::move(source).error(); }
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t at = 0;;) {
    const auto count = (*source)->read_at(at, block);
    if (!count) { return count.error(); }
    if (*count == 0) { return to.sync(); }
    if (auto written = to.write_at(at, std::span(block).first(*count)); !written) { return written; }
    at += *count;
  }
}

/// Returns true if `path`, read from a record of a writer, is a path inside the directory.
bool is_inside_directory(std::string_view path) {
  const bool has_parent = fmt::format("/{}/", path).find("/../") != std::string::npos;
  return !path.empty() && path.front() != '/' && !has_parent && path.find('\0') == std::string_view::npos;
}

}  // namespace

namespace detail {

/// The right of one writer to change the directory.
class fence : public std::enable_shared_from_this<fence> {
public:
  fence(std::shared_ptr<file_system> base, std::string root) : base_(std::move(base)), root_(std::move(root)) {}

  /// Becomes the newest writer.
  result<void> open() {
    constexpr int attempts = 100;  // each failed attempt means that another writer has opened the directory in the meantime
    for (int attempt = 1; attempt <= attempts; ++attempt) {
      const auto is_made = make_own_directory();
      if (!is_made) { return is_made.error(); }
      if (!*is_made) { continue; }
      const auto is_newest = take_over();
      if (!is_newest) { return is_newest.error(); }
      if (*is_newest) { return seal_and_clean(); }
    }
    return status(errc::unavailable, "could not become its writer, because other processes open it all the time; start one process only",
                  root_);
  }

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const std::string& root() const noexcept { return root_; }
  /// Returns the path of a temporary file in the directory of the writer.
  [[nodiscard]] std::string path_of_temporary(const std::string& path) const { return join_path(staging_, base_name(path)); }

  [[nodiscard]] result<void> check() const {
    const auto is_there = base_->exists(staging_);
    if (!is_there) { return is_there.error(); }
    return *is_there ? result<void>() : result<void>(taken_over());
  }

  /// Returns the error of a change. A missing file can mean that another writer has taken over.
  [[nodiscard]] status explained(status reason) const {
    if (reason.code != errc::not_found) { return reason; }
    const auto is_there = base_->exists(staging_);
    return is_there && !*is_there ? taken_over() : reason;
  }

  /// Moves a file out of the writer's directory.
  result<void> place(const std::string& staged, const std::string& path) {
    auto renamed = base_->rename(staged, path);
    return renamed ? renamed : result<void>(explained(std::move(renamed).error()));
  }

  result<void> remove(const std::string& path) {
    const auto removed = next_path("removed-");
    if (auto moved = base_->rename(path, removed); !moved) { return explained(std::move(moved).error()); }
    auto gone = base_->remove(removed);
    if (gone || gone.error().code == errc::not_found) { return {}; }
    if (auto back = place(removed, path); !back) { log_warning(back.error().to_string()); }  // a directory that is not empty
    return status(gone.error().code, gone.error().message, path);
  }

  result<std::unique_ptr<file>> create_temporary(const std::string& path) {
    auto opened = base_->open(path_of_temporary(path), open_mode::create_new);
    if (!opened) { return explained(std::move(opened).error()); }
    return opened;
  }

  result<std::unique_ptr<file>> open_for_writing(const std::string& path, open_mode mode);

  result<void> create_directories(const std::string& path) {
    const auto is_there = base_->stat(path);
    if (is_there) {
      return is_there->is_directory ? result<void>()
                                    : result<void>(status(errc::already_exists, "could not create this directory: it is a file", path));
    }
    if (is_there.error().code != errc::not_found || path == root_) { return explained(is_there.error()); }
    const auto parent = parent_directory(path);
    if (auto made = create_directories(parent); !made) { return made; }
    if (auto made = create_directory(path); !made) { return made; }
    return base_->sync_directory(parent);
  }
  result<void> create_directory(const std::string& path) {
    const auto staged = next_path("directory-");
    if (auto made = base_->create_directory(staged); !made) { return explained(std::move(made).error()); }
    return place(staged, path);
  }

  /// Records that the file `name`, a path relative to the directory, is open for writing. Returns the path of the record.
  result<std::string> record(const std::string& name) {
    auto made = next_path(written_prefix);
    auto opened = base_->open(made, open_mode::create_new);
    if (!opened) { return explained(std::move(opened).error()); }
    if (auto written = (*opened)->write_at(0, std::as_bytes(std::span(name))); !written) { return std::move(written).error(); }
    if (auto closed = (*opened)->close(); !closed) { return std::move(closed).error(); }
    return made;
  }
  void forget(const std::string& record) noexcept {
    if (const auto removed = base_->remove(record); !removed && removed.error().code != errc::not_found) {
      log_warning(removed.error().to_string());
    }
  }

private:
  [[nodiscard]] std::string next_path(std::string_view prefix) { return join_path(staging_, fmt::format("{}{}", prefix, ++count_)); }

  /// Creates the directory of the writer with a free number. Returns false if another process has taken the number.
  result<bool> make_own_directory() {
    const auto names = base_->list(root_);
    if (!names) { return names.error(); }
    number_ = highest_writer(*names) + 1;
    const auto own = join_path(root_, fmt::format("{}{}", writer_prefix, number_));
    if (auto made = base_->create_directory(own); !made) {
      return made.error().code == errc::already_exists ? result<bool>(false) : std::move(made).error();
    }
    // The unique name prevents that a late writer uses the directory of another writer that got its number again (see `take_over`).
    staging_ = join_path(own, unique_name());
    if (auto made = base_->create_directory(staging_); !made) {
      return made.error().code == errc::not_found ? result<bool>(false) : std::move(made).error();  // already moved by another writer
    }
    return true;
  }

  /// Moves the directories of all lower writers into the own one. Returns false if there is a writer with a higher number: the own number
  /// was free because that writer had moved its former owner.
  result<bool> take_over() {
    const auto names = base_->list(root_);
    if (!names) { return names.error(); }
    if (highest_writer(*names) > number_) { return false; }
    for (const auto& name : *names) {
      const auto number = writer_number(name);
      if (!number || *number == number_) { continue; }
      const auto moved = base_->rename(join_path(root_, name), next_path("taken-"));
      if (!moved && moved.error().code != errc::not_found) { return moved.error(); }
      if (moved) { continue; }
      if (auto is_newest = check(); !is_newest) { return std::move(is_newest).error(); }
    }
    if (auto synced = base_->sync_directory(root_); !synced) { return std::move(synced).error(); }
    return true;
  }

  result<void> seal_and_clean() {
    const auto names = base_->list(staging_);
    if (!names) { return explained(names.error()); }
    // First, all that earlier writers have prepared: an operation that one of them has begun can then no longer place it.
    for (const auto& name : *names) {
      static_cast<void>(for_each_below(*base_, join_path(staging_, name), [&](const std::string& path, bool is_directory) {
        return is_directory || is_record(path) ? result<void>() : base_->remove(path);
      }));
    }
    for (const auto& name : *names) {
      const auto taken = join_path(staging_, name);
      auto sealed = for_each_below(*base_, taken, [&](const std::string& path, bool is_directory) {
        return !is_directory && is_record(path) ? seal_recorded(path) : result<void>();
      });
      if (!sealed) { return explained(std::move(sealed).error()); }
      const auto removed =
          for_each_below(*base_, taken, [&](const std::string& path, bool /*is_directory*/) { return base_->remove(path); });
      if (!removed) {
        log_warning(removed.error().to_string() + "; it was left by an earlier writer of this directory and is no longer needed");
      }
    }
    return check();
  }

  [[nodiscard]] static bool is_record(const std::string& path) { return base_name(path).starts_with(written_prefix); }

  /// Replaces a file that an earlier writer had open for writing by a copy.
  result<void> seal_recorded(const std::string& record) {
    constexpr std::uint64_t longest_path = 1 << 16;
    const auto name = read_text_file(*base_, record, longest_path);
    if (!name) { return name.error(); }
    if (!is_inside_directory(*name)) { return {}; }  // the writer was killed before it wrote the record, and so before it opened the file
    const auto path = join_path(root_, *name);
    const auto about = base_->stat(path);
    if (!about || about->is_directory) { return {}; }  // removed, or never placed
    const auto staged = next_path("sealed-");
    auto copy = base_->open(staged, open_mode::create_new);
    if (!copy) { return std::move(copy).error(); }
    if (auto copied = copy_content(*base_, path, **copy); !copied) { return copied; }
    if (auto closed = (*copy)->close(); !closed) { return closed; }
    if (auto placed = base_->rename(staged, path); !placed) { return placed; }
    return base_->sync_directory(parent_directory(path));
  }

  [[nodiscard]] status taken_over() const {
    const auto names = base_->list(root_);
    const auto newest = names ? highest_writer(*names) : 0;
    if (newest <= number_) {
      return {errc::failed_precondition,
              "this directory, or the directory of its writer in it, was moved or removed; nothing is changed at "
              "its path. Stop this run, or move the original directory back",
              root_};
    }
    const auto owner = detail::fence_owner(*base_, root_);
    return {errc::failed_precondition,
            fmt::format("{} has taken over this directory as its writer {}; this process, writer {}, can no longer change it. If both "
                        "processes are meant to run, give each its own directory",
                        owner ? detail::to_line(*owner) : "another process", newest, number_),
            root_};
  }

  std::shared_ptr<file_system> base_;
  std::string root_;     // canonical path of the directory
  std::string staging_;  // directory of the writer: `.stepwell-writer-N/` and a unique name
  std::uint64_t number_ = 0;
  std::atomic<std::uint64_t> count_ = 0;  // names that were made in `staging_`
};

std::optional<lock_content> fence_owner(file_system& files, const std::string& directory) {
  const auto names = files.list(directory);
  const auto newest = names ? highest_writer(*names) : 0;
  if (newest == 0) { return std::nullopt; }
  const auto owners = files.list(join_path(directory, fmt::format("{}{}", writer_prefix, newest)));
  return owners && !owners->empty() ? std::optional(owner_in(owners->front())) : std::nullopt;
}

}  // namespace detail

namespace {

using detail::fence;

/// A file that a fence has recorded.
class recorded_file final : public file {
public:
  recorded_file(std::string path, std::unique_ptr<file> base, std::shared_ptr<fence> owner, std::string record)
      : file(std::move(path)), base_(std::move(base)), owner_(std::move(owner)), record_(std::move(record)) {}
  ~recorded_file() override { forget(); }

  result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override { return base_->write_at(offset, bytes); }
  result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> into) override { return base_->read_at(offset, into); }
  result<std::size_t> read_uncached(std::uint64_t offset, std::span<std::byte> into) override { return base_->read_uncached(offset, into); }
  bool is_cached(std::uint64_t offset, std::uint64_t size) noexcept override { return base_->is_cached(offset, size); }
  void start_reading(std::uint64_t offset, std::uint64_t size) noexcept override { base_->start_reading(offset, size); }
  std::uint64_t skip_hole(std::uint64_t offset) noexcept override { return base_->skip_hole(offset); }
  result<void> sync() override {
    auto synced = base_->sync();
    return synced ? owner_->check() : synced;
  }
  void start_writeback(std::uint64_t offset, std::uint64_t size) noexcept override { base_->start_writeback(offset, size); }
  void bypass_cache() noexcept override { base_->bypass_cache(); }
  result<std::uint64_t> size() override { return base_->size(); }
  result<void> truncate(std::uint64_t size) override { return base_->truncate(size); }
  result<void> close() override {
    auto closed = base_->close();
    forget();
    return closed;
  }

private:
  void forget() noexcept {
    base_.reset();
    if (record_.empty() || !process_.is_this_process()) { return; }  // a child process made by fork: the parent still writes the file
    owner_->forget(std::exchange(record_, {}));
  }

  std::unique_ptr<file> base_;
  std::shared_ptr<fence> owner_;
  std::string record_;
  stepwell::detail::owner_process process_;
};

}  // namespace

result<std::unique_ptr<file>> detail::fence::open_for_writing(const std::string& path, open_mode mode) {
  const auto is_there = base_->exists(path);
  if (!is_there) { return is_there.error(); }
  if (*is_there && mode == open_mode::create_new) {
    return status(errc::already_exists, "could not create it as a new file: it exists; choose another name, or remove it", path);
  }
  const auto staged = next_path("opened-");
  auto opened = base_->open(staged, open_mode::create_new);
  if (!opened) { return explained(std::move(opened).error()); }
  if (*is_there && mode == open_mode::append) {
    if (auto copied = copy_content(*base_, path, **opened); !copied) { return std::move(copied).error(); }
  }
  auto recorded = record(path.substr(root_.size() + 1));  // before the file can be changed under its name
  if (!recorded) { return std::move(recorded).error(); }
  auto made = std::make_unique<recorded_file>(path, std::move(opened).value(), shared_from_this(), std::move(recorded).value());
  if (auto placed = place(staged, path); !placed) { return std::move(placed).error(); }
  return made;
}

namespace {

/// Returns the part of `path` below `directory`, without the slash between them; empty for the directory itself.
std::optional<std::string> rest_below(const std::string& directory, const std::string& path) {
  if (!path.starts_with(directory)) { return std::nullopt; }
  const std::string_view rest = std::string_view(path).substr(directory.size());
  if (rest.empty() || directory.ends_with('/')) { return std::string(rest); }
  return rest.starts_with('/') ? std::optional(std::string(rest.substr(1))) : std::nullopt;
}

std::string normal(const std::string& path) {
  auto found = std::filesystem::path(path).lexically_normal().string();
  while (found.size() > 1 && found.ends_with('/')) { found.pop_back(); }
  return found;
}

/// A path inside the directory, and the fence through which it is changed. Without a fence, the path is changed as usual.
struct route {
  std::shared_ptr<fence> through;
  std::string path;
};

}  // namespace

bool is_fence_name(std::string_view name) noexcept { return writer_number(name).has_value(); }

struct fenced_directory::state : std::enable_shared_from_this<state> {
  state(std::string wanted, std::shared_ptr<file_system> below, fence_use when)
      : base(below ? std::move(below) : posix_file_system()), directory(std::move(wanted)), use(when) {}

  result<void> open_fence() STEPWELL_HOLDS(mutex) {
    if (opened) { return opened->check(); }
    if (auto made = base->create_directories(directory); !made) { return made; }
    auto root = base->canonical(directory);
    if (!root) { return std::move(root).error(); }
    auto made = std::make_shared<fence>(base, std::move(root).value());
    if (auto is_newest = made->open(); !is_newest) {
      if (is_newest.error().code == errc::failed_precondition) { opened = std::move(made); }  // a later change must not take it over again
      return is_newest;
    }
    for (const auto& path : unrecorded) {
      const auto rest = rest_below(made->root(), path) ? rest_below(made->root(), path) : rest_below(directory, path);
      if (!rest) { continue; }
      if (auto recorded = made->record(*rest); !recorded) { return std::move(recorded).error(); }
    }
    unrecorded.clear();
    opened = std::move(made);
    return {};
  }

  /// Returns `path` relative to the directory, or nothing if it is outside.
  [[nodiscard]] std::optional<std::string> inside(const std::string& path) const STEPWELL_HOLDS(mutex) {
    const auto whole = absolute_path(path);
    if (!whole) { return std::nullopt; }
    const auto plain = normal(*whole);
    if (auto rest = rest_below(directory, plain)) { return rest; }
    if (opened) { return rest_below(opened->root(), plain); }
    const auto root = base->canonical(directory);
    return root ? rest_below(*root, plain) : std::nullopt;
  }

  /// Opens a file for writing while the fence is not open. Keeps its path, in case the fence is opened later.
  result<std::unique_ptr<file>> open_unfenced(const std::string& path, open_mode mode) {
    auto opened_file = base->open(path, mode);
    const stepwell::detail::mutex_lock lock(mutex);
    const bool may_matter = opened_file && !is_lockable && use == fence_use::if_not_lockable && !is_temporary_name(base_name(path));
    if (const auto whole = absolute_path(path); may_matter && whole) { unrecorded.push_back(normal(*whole)); }
    return opened_file;
  }

  /// Returns the route of a change. Opens the fence if it is always used.
  result<route> route_of(const std::string& path) {
    const stepwell::detail::mutex_lock lock(mutex);
    if (!opened && use != fence_use::always) { return route{}; }
    const auto rest = inside(path);
    if (!rest) { return route{}; }
    if (!opened) {
      if (auto is_open = open_fence(); !is_open) { return std::move(is_open).error(); }
    }
    return route{opened, rest->empty() ? opened->root() : join_path(opened->root(), *rest)};
  }

  const std::shared_ptr<file_system> base;
  const std::string directory;
  const fence_use use;

  stepwell::detail::checked_mutex mutex;  // held while the fence is opened
  std::shared_ptr<fence> opened STEPWELL_GUARDED_BY(mutex);
  std::set<std::string> locked STEPWELL_GUARDED_BY(mutex);  // paths of the locks that are held
  bool was_released STEPWELL_GUARDED_BY(mutex) = false;     // a lock was held and released
  bool is_lockable STEPWELL_GUARDED_BY(mutex) = false;      // the other file system has locked a file
  std::vector<std::string> unrecorded
      STEPWELL_GUARDED_BY(mutex);  // paths of files that were opened for writing before it was known whether a fence is necessary
};

namespace {

/// A lock that stands for the fence. `held` is the lock of the other file system, or null.
class fence_lock final : public file_lock {
public:
  fence_lock(std::unique_ptr<file_lock> held, std::function<void()> release) : held_(std::move(held)), release_(std::move(release)) {}
  ~fence_lock() override { release_(); }
  /// Without a lock returns true: after a move of the directory, its next change fails.
  [[nodiscard]] bool is_at(const std::string& path) const noexcept override { return !held_ || held_->is_at(path); }

private:
  std::unique_ptr<file_lock> held_;
  std::function<void()> release_;
};

}  // namespace

fenced_directory::fenced_directory(const std::string& directory, std::shared_ptr<file_system> base, fence_use use) {
  const auto whole = absolute_path(directory);
  state_ = std::make_shared<state>(normal(whole ? *whole : directory), std::move(base), use);
}
fenced_directory::~fenced_directory() = default;

const std::shared_ptr<file_system>& fenced_directory::base() const noexcept { return state_->base; }
fence_use fenced_directory::use() const noexcept { return state_->use; }
const std::string& fenced_directory::directory() const noexcept { return state_->directory; }

result<std::uint64_t> fenced_directory::open_fence() {
  const stepwell::detail::mutex_lock lock(state_->mutex);
  if (auto is_newest = state_->open_fence(); !is_newest) { return std::move(is_newest).error(); }
  return state_->opened->number();
}

result<void> fenced_directory::check() {
  const stepwell::detail::mutex_lock lock(state_->mutex);
  return state_->opened ? state_->opened->check() : result<void>();
}

result<std::unique_ptr<file>> fenced_directory::open(const std::string& path, open_mode mode) {
  if (mode == open_mode::read) { return state_->base->open(path, mode); }
  const auto way = state_->route_of(path);
  if (!way) { return way.error(); }
  if (!way->through) { return state_->open_unfenced(path, mode); }
  const bool is_temporary = mode == open_mode::create_new && is_temporary_name(base_name(path));
  return is_temporary ? way->through->create_temporary(path) : way->through->open_for_writing(way->path, mode);
}

result<void> fenced_directory::rename(const std::string& from, const std::string& to) {
  const auto source = state_->route_of(from);
  if (!source) { return source.error(); }
  const auto target = state_->route_of(to);
  if (!target) { return target.error(); }
  if (!source->through && !target->through) { return state_->base->rename(from, to); }
  if (!source->through || !target->through || !is_temporary_name(base_name(from))) {
    return status(errc::unimplemented,
                  "could not rename " + from +
                      " to this path: in a directory with a fence, only files of `atomic_file` "
                      "are renamed",
                  to);
  }
  return target->through->place(source->through->path_of_temporary(from), target->path);
}

result<void> fenced_directory::remove(const std::string& path) {
  const auto way = state_->route_of(path);
  if (!way) { return way.error(); }
  if (!way->through) { return state_->base->remove(path); }
  if (is_temporary_name(base_name(path))) {
    auto removed = state_->base->remove(way->through->path_of_temporary(path));
    if (removed || removed.error().code != errc::not_found) { return removed; }
  }
  return way->through->remove(way->path);  // of a temporary file, too: a writer without a fence may have left it
}

result<void> fenced_directory::create_directories(const std::string& directory) {
  const auto way = state_->route_of(directory);
  if (!way) { return way.error(); }
  return way->through ? way->through->create_directories(way->path) : state_->base->create_directories(directory);
}

result<void> fenced_directory::create_directory(const std::string& path) {
  const auto way = state_->route_of(path);
  if (!way) { return way.error(); }
  return way->through ? way->through->create_directory(way->path) : state_->base->create_directory(path);
}

result<void> fenced_directory::sync_directory(const std::string& directory) { return state_->base->sync_directory(directory); }
result<std::vector<std::string>> fenced_directory::list(const std::string& directory) { return state_->base->list(directory); }
result<file_info> fenced_directory::stat(const std::string& path) { return state_->base->stat(path); }
result<std::string> fenced_directory::canonical(const std::string& path) { return state_->base->canonical(path); }

result<std::unique_ptr<file_lock>> fenced_directory::lock(const std::string& path) {
  auto& all = *state_;
  const stepwell::detail::mutex_lock lock(all.mutex);
  std::unique_ptr<file_lock> held;
  if (all.use == fence_use::if_not_lockable && (!all.opened || all.is_lockable)) {
    auto locked = all.base->lock(path);
    all.is_lockable = all.is_lockable || locked.ok();
    if (locked ? !all.opened : locked.error().code != errc::unimplemented) { return locked; }
    if (!locked) {
      log_info(locked.error().to_string() +
               "; a fence takes the place of the lock: a process that opens this directory later takes it over");
    }
    if (locked) { held = std::move(locked).value(); }
  }
  const auto rest = all.inside(path);
  if (!rest) { return held ? result<std::unique_ptr<file_lock>>(std::move(held)) : all.base->lock(path); }
  if (all.opened && all.was_released && all.locked.empty() && !all.opened->check()) { all.opened = nullptr; }
  if (auto is_newest = all.open_fence(); !is_newest) { return std::move(is_newest).error(); }
  if (!all.locked.insert(*rest).second) {
    return status(errc::failed_precondition, fmt::format("could not lock it: this process has locked it already; {}", detail::close_first),
                  path);
  }
  return std::make_unique<fence_lock>(std::move(held), [shared = state_, name = *rest] {
    const stepwell::detail::mutex_lock releasing(shared->mutex);
    shared->locked.erase(name);
    shared->was_released = true;
  });
}

}  // namespace stepwell::io
