// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/detail/event_file.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/io/path.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

namespace stepwell::summary {
namespace {

constexpr std::string_view prefix = "events.out.tfevents.";

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') { return "localhost"; }
  return name.data();
}

bool is_event_file(std::string_view name) { return name.find("tfevents") != std::string_view::npos; }

// Returns the seconds in an event file's name.
std::optional<std::int64_t> seconds_of(std::string_view name) {
  if (!name.starts_with(prefix)) { return std::nullopt; }
  name.remove_prefix(prefix.size());
  std::int64_t seconds = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), seconds);
  if (failure != std::errc{} || seconds < 0) { return std::nullopt; }
  return seconds;
}

// The greatest time with ten digits. Up to it, the order of names is the order of times.
constexpr std::int64_t last_second = 9'999'999'999;

std::int64_t next_second(std::span<const std::string> names, std::int64_t now) {
  for (const auto& name : names) {
    const auto seconds = seconds_of(name);
    if (seconds && *seconds < last_second) { now = std::max(now, *seconds + 1); }
  }
  return now;
}

void warn_if_not_last(std::span<const std::string> names, const std::string& ours) {
  for (const auto& name : names) {
    if (is_event_file(name) && name >= ours) {
      log_warning(fmt::format("viewers will read {} after {} and may ignore the second file; move the first one away", name, ours));
    }
  }
}

// A sink that fails in `sync` after the file was removed or renamed.
class event_file_sink final : public io::byte_sink {
public:
  event_file_sink(std::shared_ptr<io::file_system> files, std::string path, std::unique_ptr<io::file> target)
      : files_(std::move(files)), path_(std::move(path)), target_(io::sink_into(std::move(target))) {}

  result<void> write(std::span<const std::byte> bytes) override {
    trace_span span("write", "summary");
    describe(span);
    span.argument("bytes", bytes.size());
    return target_->write(bytes);
  }
  result<void> sync() override {
    trace_span span("sync", "summary");
    describe(span);
    if (auto synced = target_->sync(); !synced) { return synced; }
    const auto is_there = files_->exists(path_);
    if (!is_there) { return is_there.error(); }
    if (*is_there) { return {}; }
    return status(errc::not_found,
                  "the event file was removed or renamed while it was written; later events would be "
                  "lost, start a new writer",
                  path_);
  }
  result<void> close() override { return target_->close(); }

private:
  void describe(trace_span& span) const noexcept { span.argument("file", path_); }

  std::shared_ptr<io::file_system> files_;
  std::string path_;
  std::unique_ptr<io::byte_sink> target_;
};

}  // namespace

std::string next_event_file_name(std::span<const std::string> names, std::int64_t now_seconds, std::string_view suffix) {
  static std::atomic<std::uint64_t> counter = 0;
  return fmt::format("{}{:010}.{}.{}.{}{}", prefix, next_second(names, now_seconds), this_host(), ::getpid(),
                     counter.fetch_add(1, std::memory_order_relaxed), suffix);
}

result<new_event_file> make_event_file(const std::shared_ptr<io::file_system>& files, const std::string& directory, clock::wall_time now,
                                       std::string_view suffix) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  constexpr int attempts = 16;  // another host may take the same name, but hardly twice
  for (int attempt = 1;; ++attempt) {
    const auto names = files->list(directory);
    if (!names) { return names.error(); }
    const auto name = next_event_file_name(*names, seconds, suffix);
    const auto path = io::join_path(directory, name);
    auto opened = files->open(path, io::open_mode::create_new);
    if (opened) {
      if (auto synced = files->sync_directory(directory); !synced) { return std::move(synced).error(); }
      warn_if_not_last(*names, name);
      return new_event_file{path, std::make_unique<event_file_sink>(files, path, std::move(opened).value())};
    }
    if (opened.error().code != errc::already_exists || attempt == attempts) { return std::move(opened).error(); }
  }
}

}  // namespace stepwell::summary
