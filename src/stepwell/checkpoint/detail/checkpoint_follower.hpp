// SPDX-License-Identifier: Apache-2.0
//
// Internal: looks at a directory again and again for checkpoints it has not given yet.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoints_iterator.hpp"
#include "stepwell/io/file_system.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace stepwell::detail {

/// Remembers what it has seen, and gives nothing twice.
class checkpoint_follower {
public:
  /// @param all_listed Every listed checkpoint is given, oldest first; else only the newest.
  checkpoint_follower(std::string directory, new_checkpoint_options options, bool all_listed = false, std::stop_token cancel_token = {});

  /// Whatever is called `prefix` counts as seen.
  void skip(const std::string& prefix) { seen_[prefix] = std::nullopt; }

  /// Returns the next new one; nothing after the timeout, a cancellation, or a stop. A stop ends the wait, and one more look
  /// is made. What the state file lists at that moment is still given, and nothing after it.
  [[nodiscard]] std::optional<std::string> wait_for_next();

  /// Waits until `when`, a stop or a cancellation.
  void sleep_until(clock::time_point when) const;
  /// Returns true if nothing more will be given, whatever is saved: the look after a stop was made, or it was cancelled.
  [[nodiscard]] bool is_at_end() const noexcept { return last_claims_.has_value() || cancel_token_.stop_requested(); }
  [[nodiscard]] clock& time() const noexcept { return *options_.clock; }

private:
  [[nodiscard]] bool is_woken() const noexcept { return options_.stop_token.stop_requested() || cancel_token_.stop_requested(); }
  [[nodiscard]] std::optional<std::string> look(bool is_last);
  [[nodiscard]] bool is_new(const std::string& prefix);
  [[nodiscard]] std::vector<std::string> claims();
  [[nodiscard]] bool is_whole(const std::string& prefix);
  [[nodiscard]] std::string fingerprint(const std::string& prefix) const;

  std::string directory_;
  new_checkpoint_options options_;
  bool all_listed_;
  std::stop_token cancel_token_;
  /// When the index was written; nothing where any with this name counts.
  std::map<std::string, std::optional<clock::wall_time>> seen_;
  std::set<std::string> damaged_;                        // the files of damaged ones, as they were then
  std::optional<clock::wall_time> unreadable_;           // the state file, as it was then
  std::optional<std::vector<std::string>> last_claims_;  // what was listed at the first look after a stop
};

}  // namespace stepwell::detail
