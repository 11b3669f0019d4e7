// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/log.hpp"

#include "stepwell/base/detail/printable.hpp"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace stepwell {
namespace {

struct log_state {
  std::mutex mutex;
  log_sink sink;  // if empty, messages go to standard error
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

void write_to_stderr(log_level level, std::string_view message) {
  static const bool is_terminal = isatty(STDERR_FILENO) == 1;
  std::string line = is_terminal ? "\r\x1b[Kstepwell " : "stepwell ";  // overwrites a progress bar
  line.append(to_string(level)).append(": ").append(shown(message)).push_back('\n');
  std::fwrite(line.data(), 1, line.size(), stderr);
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
  const std::lock_guard lock(state().mutex);
  if (state().sink) {
    state().sink(level, message);
  } else {
    write_to_stderr(level, message);
  }
}

log_sink set_log_sink(log_sink sink) {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().sink, std::move(sink));
}

log_level set_log_level(log_level level) noexcept { return state().threshold.exchange(level); }

}  // namespace stepwell
