// SPDX-License-Identifier: Apache-2.0
//
// Internal: one who looks at a directory again and again.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoints_iterator.hpp"
#include "stepwell/io/file_system.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace stepwell::detail {

/// Remembers what it has seen, and gives nothing twice.
class checkpoint_follower {
public:
  checkpoint_follower(std::string directory, new_checkpoint_options options);

  /// Whatever is called `prefix` counts as seen.
  void skip(const std::string& prefix) { seen_[prefix] = std::nullopt; }

  /// The next new one; nothing after the timeout or a stop.
  [[nodiscard]] std::optional<std::string> wait_for_next();

  /// Waits, unless asked to stop; whether it was not.
  bool sleep_until(clock::time_point when) const;
  [[nodiscard]] bool stop_requested() const noexcept { return options_.stop_token.stop_requested(); }
  [[nodiscard]] clock& time() const noexcept { return *options_.clock; }

private:
  [[nodiscard]] std::optional<std::string> look();
  [[nodiscard]] std::optional<std::string> newest_claimed();
  [[nodiscard]] bool is_whole(const std::string& prefix);
  [[nodiscard]] std::string fingerprint(const std::string& prefix) const;

  std::string directory_;
  new_checkpoint_options options_;
  /// When the index was written; nothing where any with this name counts.
  std::map<std::string, std::optional<clock::wall_time>> seen_;
  std::string damaged_;                         // the last damaged one, as it was then
  std::optional<clock::wall_time> unreadable_;  // the state file, as it was then
};

}  // namespace stepwell::detail
