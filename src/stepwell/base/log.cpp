// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/log.hpp"

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/printable.hpp"
#include "stepwell/base/detail/status_region.hpp"

#include <time.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

struct log_state {
  detail::checked_mutex mutex;
  log_sink sink STEPWELL_GUARDED_BY(mutex);  // if empty, messages go to standard error
  std::vector<const log_sink*> listeners STEPWELL_GUARDED_BY(mutex);
  std::atomic<log_level> threshold = log_level::info;
};

log_state& state() {
  static log_state* const instance = new log_state;  // never destroyed: threads may log while static objects are destroyed
  return *instance;
}

/// Returns `message` with control characters escaped, for a terminal. Indents all lines after the first, so that the name of a tensor or
/// file with a line feed cannot imitate a log line.
std::string shown(std::string_view message) {
  auto text = detail::printable_lines(message);
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) { text.insert(at + 1, "  "); }
  return text;
}

/// Returns the beginning of a line, with the time in UTC: "2026-11-22 05:34:04Z stepwell ". On a terminal, where the line should not wrap and
/// the day is known, only "05:34:04Z ".
std::string beginning_of_line() {
  const auto now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  const auto* const format = ::isatty(STDERR_FILENO) == 1 ? "%TZ " : "%F %TZ stepwell ";
  std::array<char, 48> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

void write_to_stderr(log_level level, std::string_view message) {
  auto line = beginning_of_line();
  line.append(to_string(level)).append(": ").append(shown(message)).push_back('\n');
  detail::status_region::of_stderr()->print(line);
}

thread_local const std::string* current_name = nullptr;

void pass_to_sink(log_level level, std::string_view message) {
  const detail::mutex_lock lock(state().mutex);
  if (state().sink) {
    state().sink(level, message);
  } else {
    write_to_stderr(level, message);
  }
  for (const auto* listen : state().listeners) { (*listen)(level, message); }
}

}  // namespace

std::string_view to_string(log_level level) noexcept {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
  }
  return "info";
}

void log(log_level level, std::string_view message) {
  if (level < state().threshold.load(std::memory_order_relaxed)) { return; }
  if (current_name == nullptr) { return pass_to_sink(level, message); }
  pass_to_sink(level, "[" + *current_name + "] " + std::string(message));
}

log_listener::log_listener(log_sink listen) : listen_(std::move(listen)) {
  const detail::mutex_lock lock(state().mutex);
  state().listeners.push_back(&listen_);
}
log_listener::~log_listener() {
  const detail::mutex_lock lock(state().mutex);
  std::erase(state().listeners, &listen_);
}

log_scope::log_scope(const std::string& name) noexcept : before_(std::exchange(current_name, name.empty() ? current_name : &name)) {}
log_scope::~log_scope() { current_name = before_; }

const std::string& log_name() noexcept {
  static const std::string* const none = new std::string;  // NOLINT(bugprone-unhandled-exception-at-new): once, a few bytes
  return current_name != nullptr ? *current_name : *none;
}

void print_line(std::string_view text) {
  detail::status_region::of_stderr()->print_by([text] {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  });
}

log_sink set_log_sink(log_sink sink) {
  const detail::mutex_lock lock(state().mutex);
  return std::exchange(state().sink, std::move(sink));
}

log_level set_log_level(log_level level) noexcept { return state().threshold.exchange(level); }

}  // namespace stepwell
