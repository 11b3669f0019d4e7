// SPDX-License-Identifier: Apache-2.0
#include "tool/events.hpp"

#include "stepwell/base/error.hpp"
#include "tool/event_stream.hpp"
#include "tool/target.hpp"
#include "tool/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <variant>

namespace stepwell::tool {
namespace {

constexpr auto between_looks = std::chrono::seconds(1);

void complain(console& to, std::string_view what) { to.err << "stepwell: " << printable(what) << '\n'; }

/// Forwards events, and collects their tags.
class tag_watcher final : public event_sink {
public:
  explicit tag_watcher(event_sink& next) : next_(next) {}

  void add(std::string_view file, const format::event& happened) override {
    if (const auto* values = std::get_if<format::summary>(&happened.what)) {
      for (const auto& value : values->values) {
        if (!seen_.contains(value.tag)) { seen_.insert(value.tag); }
      }
    }
    next_.add(file, happened);
  }
  void end_file(std::string_view file, std::uint64_t records, std::uint64_t bytes) override { next_.end_file(file, records, bytes); }
  void finish() override { next_.finish(); }

  /// Throws `not_found_error` if one of `tags` was not seen.
  void require(const std::vector<std::string>& tags, const std::string& target) const {
    for (const auto& tag : tags) {
      if (seen_.contains(tag)) { continue; }
      throw not_found_error(
          fmt::format("there is no tag \"{}\"; tags are {}", tag, seen_.empty() ? "none" : fmt::format("{}", fmt::join(seen_, ", "))),
          target);
    }
  }

private:
  event_sink& next_;
  std::set<std::string, std::less<>> seen_;
};

/// Shows the remaining events of one file.
outcome drain(event_stream& stream, event_sink& sink, console& to) {
  try {
    while (const auto happened = stream.next()) { sink.add(stream.path(), *happened); }
    return outcome::good;
  } catch (const data_loss_error& damage) {
    complain(to, damage.what());
    return outcome::damaged;
  }
}

outcome show(const std::vector<std::string>& files, event_sink& sink, console& to) {
  outcome how = outcome::good;
  for (const auto& path : files) {
    event_stream stream(*to.files, path);
    auto seen = drain(stream, sink, to);
    sink.end_file(path, stream.records(), stream.bytes());
    if (seen == outcome::good && stream.cut_short() != 0) {
      complain(to, fmt::format("{}: the last record is truncated, only {} of it are present; it may still be being written", path,
                               count_text(stream.cut_short(), "byte")));
      seen = outcome::damaged;
    }
    how = worse(how, seen);
  }
  return how;
}

/// Waits for the polling interval. Returns false if the command was stopped.
bool pause(console& to) {
  std::mutex mutex;
  std::condition_variable stopped;
  const std::stop_callback wake(to.stop, [&] {
    { const std::lock_guard held(mutex); }
    stopped.notify_all();
  });
  std::unique_lock lock(mutex);
  const auto when = to.time->now() + between_looks;
  to.time->wait_until(lock, stopped, when, [&] { return to.stop.stop_requested() || to.time->now() >= when; });
  return !to.stop.stop_requested();
}

/// Follows the newest file, and switches to a later file when one appears. Does not return to earlier files, like viewers.
class follower {
public:
  follower(const events_options& options, event_sink& sink, console& to) : options_(options), sink_(sink), to_(to) {}

  outcome run() {
    do {
      while (look()) {}
      to_.out.flush();
    } while (to_.out && pause(to_));
    return how_;
  }

private:
  /// Shows new events of the current file. If there is a later file, makes it the current file and returns true.
  bool look() {
    if (stream_ && !is_damaged_) {
      const auto how = drain(*stream_, sink_, to_);
      is_damaged_ = how != outcome::good;
      how_ = worse(how_, how);
    }
    const auto files = is_directory(to_, options_.target) ? event_files_in(to_, options_.target) : std::vector{options_.target};
    const auto later = std::ranges::find_if(files, [&](const auto& path) { return !stream_ || path > stream_->path(); });
    if (later == files.end()) { return false; }
    stream_.emplace(*to_.files, *later);
    is_damaged_ = false;
    return true;
  }

  const events_options& options_;
  event_sink& sink_;
  console& to_;
  std::optional<event_stream> stream_;
  bool is_damaged_ = false;
  outcome how_ = outcome::good;
};

}  // namespace

outcome events(const events_options& options, console& to) {
  const bool is_summary = options.form == events_form::summary || options.form == events_form::summary_json;
  if (options.follow && is_summary) { throw invalid_argument_error("--follow cannot be used with a summary; follow lines, CSV or JSON"); }
  if (options.follow && options.recursive) {
    throw invalid_argument_error("--follow cannot be used with --recursive; follow one directory");
  }
  const auto sink = is_summary ? make_summary_sink(options, to) : make_line_sink(options, to);
  if (options.follow) { return follower(options, *sink, to).run(); }
  tag_watcher watched(*sink);
  const auto how = show(require_event_files(to, options.target, options.recursive, ", or add --recursive"), watched, to);
  watched.finish();
  if (how == outcome::good) { watched.require(options.tags, options.target); }  // with damage the tag may be in the unreadable part
  return how;
}

}  // namespace stepwell::tool
