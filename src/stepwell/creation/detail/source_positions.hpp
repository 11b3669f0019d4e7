// SPDX-License-Identifier: Apache-2.0
//
// The positions of the sources of batches: saved with the state, and applied to the sources after a restore.
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

/// Positions by name of the source. A source without a name is called "default". A position outlives its source, so that the last save of a
/// session includes it.
/// @threads The session's thread.
class source_positions {
public:
  /// Returns true in the first call with this name.
  [[nodiscard]] bool is_new(const std::string& name);
  /// Registers a source: `position()` is called at each save, until `detach`. `step` is the current global step. The current position of
  /// the source is stored as its position at that step, if no source of that name was attached before.
  /// @errors `invalid_argument_error` if a source of that name is already attached.
  void attach(const std::string& name, std::function<std::uint64_t()> position, std::int64_t step);
  /// Unregisters a source, and keeps its current position. If the source cannot report its position, the last known one is kept. A restored
  /// position that was not applied yet is kept, too.
  void detach(const std::string& name) noexcept;
  /// Unregisters all sources. Their positions stay as they were at the last save.
  void leave_sources() noexcept;

  /// Returns the restored position to which the source has to seek, until `mark_positioned` is called. Empty if there is none.
  [[nodiscard]] std::optional<std::uint64_t> restored(const std::string& name) const;
  /// Marks the restored position as applied. Not called if the seek failed, so that it can be retried.
  void mark_positioned(const std::string& name) noexcept;

  /// Returns the variables `stepwell/source/NAME/position` of all sources, with current values.
  /// @lifetime The references are valid until the next call to any function.
  [[nodiscard]] variable_list variables();

  /// Stores a position found in a checkpoint, to be applied to its source.
  void restore(const std::string& name, std::int64_t position);
  /// Rewinds the sources to `step`, after a restore of the state and of the positions in the checkpoint. A source without a restored
  /// position that was attached at `step` or later is rewound to its position at the time it was attached.
  void go_back(std::int64_t step) noexcept;
  /// Returns the number of rewinds. A loop has to move its source if the number has changed.
  [[nodiscard]] std::uint64_t rewind_count() const noexcept { return rewinds_; }

  /// Marks the batch at `position` of the source to be skipped when it is reached again.
  void skip(const std::string& name, std::uint64_t position);
  [[nodiscard]] bool skips(const std::string& name) const;
  [[nodiscard]] bool is_skipped(const std::string& name, std::uint64_t position) const;

  /// Returns the name of the variable that holds the position of `name`; the second function is the inverse.
  [[nodiscard]] static std::string variable_name(const std::string& name);
  [[nodiscard]] static std::optional<std::string> source_name(std::string_view variable);

private:
  struct origin {
    std::int64_t position;
    std::int64_t step;
  };
  struct entry {
    std::int64_t position = 0;
    bool is_due = false;          // restored, but not yet applied to the source
    std::optional<origin> first;  // position and step at the time of the first `attach`
    std::function<std::uint64_t()> live;
    std::set<std::uint64_t> skipped;
  };
  std::map<std::string, entry, std::less<>> entries_;
  std::set<std::string> seen_;
  std::uint64_t rewinds_ = 0;
};

}  // namespace stepwell
