// SPDX-License-Identifier: Apache-2.0
//
// Internal: polls a directory for checkpoints that were not returned yet.
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

/// Polls a directory and returns each checkpoint once.
class checkpoint_follower {
public:
  /// @param  all_listed If true, every listed checkpoint is returned, oldest first. Otherwise only the newest is returned.
  /// @errors `invalid_argument_error` unless `seconds_to_sleep` is above zero.
  checkpoint_follower(std::string directory, new_checkpoint_options options, bool all_listed = false, std::stop_token cancel_token = {});

  /// Marks every checkpoint named `prefix` as already returned.
  void skip(const std::string& prefix) { seen_[prefix] = std::nullopt; }

  /// Blocks until there is a new complete checkpoint, and returns it. Returns nothing after the timeout or a cancellation. A stop
  /// ends the wait. After a stop one last poll is made; the checkpoints listed at that moment are still returned, and none after
  /// them.
  [[nodiscard]] std::optional<std::string> wait_for_next();

  /// Blocks until `when`, a stop or a cancellation.
  void sleep_until(clock::time_point when) const;
  /// Returns true if no more checkpoints will be returned: the last poll after a stop was made, or the follower was cancelled.
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
  /// Time at which the index was written, by prefix. Empty if every checkpoint with this name counts as returned.
  std::map<std::string, std::optional<clock::wall_time>> seen_;
  std::set<std::string> damaged_;                        // fingerprints of damaged checkpoints
  std::optional<clock::wall_time> unreadable_;           // modification time of a state file that could not be parsed
  std::optional<std::vector<std::string>> last_claims_;  // the checkpoints listed at the first poll after a stop
};

}  // namespace stepwell::detail
