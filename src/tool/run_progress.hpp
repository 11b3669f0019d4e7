// SPDX-License-Identifier: Apache-2.0
//
// The speed of a run over time, computed from its event files.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/series.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepwell::tool {

/// The steps of a run over time, for each session. A session begins with an event file, or with a START event in it. The time between
/// sessions is not counted.
class run_progress {
public:
  /// Begins an event file.
  void begin_file();
  /// Adds an event. A value or a checkpoint counts as progress if no earlier event of the session had a greater step. Hyper-parameters do
  /// not count, and neither do values that a resumed session writes at step 0.
  void add(const format::event& happened);

  /// Returns steps per second in `count` equal parts of the running time. Empty if no session has progress at two different times.
  [[nodiscard]] std::vector<double> rates(std::size_t count) const;
  /// Returns the number of sessions that have a rate.
  [[nodiscard]] std::size_t sessions() const noexcept;
  /// Returns the total running time of these sessions in seconds.
  [[nodiscard]] double seconds() const noexcept;
  /// Returns the begin of the first of these sessions, in seconds since 1970.
  /// @pre `sessions() != 0`.
  [[nodiscard]] double begin() const noexcept;
  /// Returns true if a session began after `from` and not after `to`.
  [[nodiscard]] bool has_begin_between(double from, double to) const noexcept;

private:
  struct session {
    double begin = 0;          // time of its first event
    std::int64_t reached = 0;  // greatest step so far, initially the step of the START event
    series steps;              // over seconds since 1970
  };

  std::vector<session> sessions_;
  bool is_new_file_ = true;  // true if the next event begins a session
};

}  // namespace stepwell::tool
