// SPDX-License-Identifier: Apache-2.0
//
// Finds the values that a run wrote twice, because it was resumed or rolled back and made some steps again.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/output.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepwell::tool {

/// The START events of the event files of one directory. A START event makes earlier values of its step and of later steps obsolete, as in
/// viewers.
class repeated_steps {
public:
  repeated_steps() = default;
  /// Reads the START events of `files`, which are in the order in which they were written. Damaged records are
  /// skipped silently: the reader of the values reports them.
  /// @errors Failures of the file system.
  /// @cost   Reads every file once.
  repeated_steps(const std::vector<std::string>& files, const console& to);

  /// Returns true if `happened` has values, and a later START event makes them obsolete. `file` is the index of the file, and `record` the
  /// number of records of this file up to the event.
  [[nodiscard]] bool is_obsolete(std::size_t file, std::uint64_t record, const format::event& happened) const;

private:
  struct start {
    std::size_t file;
    std::uint64_t record;
    std::int64_t least_step;  // of this START event and all later ones
  };
  std::vector<start> starts_;
};

}  // namespace stepwell::tool
