// SPDX-License-Identifier: Apache-2.0
//
// Where each source of batches stands: saved with the state, given back to the source after a restore.
#pragma once

#include "stepwell/base/variable.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace stepwell {

/// Positions by name of source; one without a name is called "default". A position outlives its source, so that the last
/// save of a session has it too.
/// @threads The session's thread.
class source_positions {
public:
  /// True for the first who asks with this name.
  [[nodiscard]] bool is_new(const std::string& name);
  /// From now on `position()` is asked at each save, until `detach`. `step` is the global step at which the source comes
  /// into use: where it stands now is where it stood at that step.
  /// @errors `invalid_argument_error` when a source of that name is already in use.
  void attach(const std::string& name, std::function<std::uint64_t()> position, std::int64_t step);
  /// The source goes: its position is kept as it is now, or, where it cannot tell, as it was at the last save.
  void detach(const std::string& name) noexcept;
  /// No source is asked any more; positions stay as they were at the last save.
  void leave_sources() noexcept;

  /// The position to seek to, after each restore until `settle`; nothing when there is none.
  [[nodiscard]] std::optional<std::uint64_t> restored(const std::string& name) const;
  /// The source is where it should be. Not called where that failed, so that it can be tried again.
  void settle(const std::string& name) noexcept;

  /// `stepwell/source/NAME/position` of each, up to date.
  /// @lifetime The references are good until the next call to any function.
  [[nodiscard]] variable_list variables();

  /// Takes a position found in a checkpoint; it is due for its source.
  void restore(const std::string& name, std::int64_t position);
  /// The state went back to `step`, and positions were restored as far as it had any. A source that came into use later
  /// than that goes to where it stood when it came.
  void go_back(std::int64_t step) noexcept;
  /// Counts the times that the state went back: a loop that sees it change has to move its source.
  [[nodiscard]] std::uint64_t returns() const noexcept { return returns_; }

  /// The batch at `position` of that source is left out when it comes again.
  void skip(const std::string& name, std::uint64_t position);
  [[nodiscard]] bool skips(const std::string& name) const;
  [[nodiscard]] bool is_skipped(const std::string& name, std::uint64_t position) const;

  /// The name of the variable that holds the position of `name`, and back.
  [[nodiscard]] static std::string variable_name(const std::string& name);
  [[nodiscard]] static std::optional<std::string> source_name(std::string_view variable);

private:
  struct origin {
    std::int64_t position;
    std::int64_t step;
  };
  struct entry {
    std::int64_t position = 0;
    bool is_due = false;          // restored, and not yet given to its source
    std::optional<origin> first;  // where it stood when it came into use
    std::function<std::uint64_t()> live;
    std::set<std::uint64_t> skipped;
  };
  std::map<std::string, entry, std::less<>> entries_;
  std::set<std::string> seen_;
  std::uint64_t returns_ = 0;
};

}  // namespace stepwell
