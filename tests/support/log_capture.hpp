// SPDX-License-Identifier: Apache-2.0
//
// Captures log messages from level debug up during its lifetime, instead of printing them.
#pragma once

#include <stepwell/base/log.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::test {

struct logged_message {
  log_level level;
  std::string text;
};

/// @threads Any thread may log.
class log_capture {
public:
  log_capture() : threshold_(set_log_level(log_level::debug)) {
    before_ = set_log_sink([this](log_level level, std::string_view text) {
      const std::lock_guard lock(mutex_);
      messages_.push_back({level, std::string(text)});
    });
  }
  log_capture(const log_capture&) = delete;
  log_capture& operator=(const log_capture&) = delete;
  ~log_capture() {
    set_log_sink(std::move(before_));
    set_log_level(threshold_);
  }

  [[nodiscard]] std::vector<logged_message> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  /// Returns the number of messages of exactly this level.
  [[nodiscard]] std::size_t count(log_level level) const {
    const auto all = messages();
    return static_cast<std::size_t>(std::ranges::count(all, level, &logged_message::level));
  }
  /// Returns true if a message of exactly this level contains `text`.
  [[nodiscard]] bool contains(log_level level, std::string_view text) const {
    const auto all = messages();
    return std::ranges::any_of(all,
                               [&](const auto& message) { return message.level == level && message.text.find(text) != std::string::npos; });
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    messages_.clear();
  }

private:
  mutable std::mutex mutex_;
  std::vector<logged_message> messages_;
  log_level threshold_;
  log_sink before_;
};

}  // namespace stepwell::test
