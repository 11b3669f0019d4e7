// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/lock_content.hpp"

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/host_name.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

namespace stepwell::io::detail {
namespace {

constexpr std::string_view time_form = "dddd-dd-ddTdd:dd:dd";

/// Removes `word` from the beginning of `text`. If `text` ends within `word`, removes all of `text`. Returns false for other texts.
bool take_word(std::string_view& text, std::string_view word) {
  const auto length = std::min(word.size(), text.size());
  if (text.substr(0, length) != word.substr(0, length)) { return false; }
  text.remove_prefix(length);
  return true;
}

/// Removes `count` characters, or all, from the beginning of `text`, and returns them.
std::string take(std::string_view& text, std::size_t count) {
  const std::string taken(text.substr(0, count));
  text.remove_prefix(taken.size());
  return taken;
}

bool is_beginning_of_time(std::string_view text) {
  return std::ranges::equal(text, time_form.substr(0, text.size()),
                            [](char found, char expected) { return expected == 'd' ? found >= '0' && found <= '9' : found == expected; });
}

}  // namespace

std::string to_line(const lock_content& content) {
  return fmt::format("process {} on host {} since {}Z", content.pid, content.host, content.since);
}

lock_content own_lock_content() {
  const auto now = std::chrono::system_clock::to_time_t(system_clock()->wall_now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return {std::to_string(::getpid()), stepwell::detail::host_name(),
          fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                      parts.tm_min, parts.tm_sec)};
}

std::optional<lock_content> parse_lock_content(std::string_view text) {
  if (text.size() > longest_lock_content) { return std::nullopt; }
  text = text.substr(0, text.find_last_not_of('\0') + 1);
  lock_content found;
  if (!take_word(text, "process ")) { return std::nullopt; }
  found.pid = take(text, text.find_first_not_of("0123456789"));
  if (!take_word(text, " on host ")) { return std::nullopt; }
  if (text.find_first_of(std::string_view("\0\n", 2)) != std::string_view::npos) { return std::nullopt; }
  found.host = take(text, text.find(" since "));
  if (!take_word(text, " since ")) { return std::nullopt; }
  found.since = take(text, time_form.size());
  found.is_whole = text == "Z";
  const bool is_beginning = is_beginning_of_time(found.since) && (text.empty() || found.is_whole);
  return is_beginning ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace stepwell::io::detail
