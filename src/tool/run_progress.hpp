// SPDX-License-Identifier: Apache-2.0
//
// How fast a run made its steps, from its event files.
#pragma once

#include "stepwell/format/events/event.hpp"
#include "tool/series.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepwell::tool {

/// The steps of a run over time, session by session. A session begins with an event file, or with a START in it. The time between
/// sessions does not count: the run did not run.
class run_progress {
public:
  /// Begins an event file.
  void begin_file();
  /// Adds an event. A value or a checkpoint counts as progress if no greater step of the session came before it. Hyper-parameters and
  /// the values that a resumed session writes at step 0 do not count.
  void add(const format::event& happened);

  /// Returns steps a second in `count` equal parts of the running time; empty if no session has two points in time.
  [[nodiscard]] std::vector<double> rates(std::size_t count) const;
  /// Returns how many sessions have a rate.
  [[nodiscard]] std::size_t sessions() const noexcept;
  /// Returns the running time of these sessions.
  [[nodiscard]] double seconds() const noexcept;
  /// Returns the begin of the first of them, in seconds since 1970. @pre `sessions() != 0`.
  [[nodiscard]] double begin() const noexcept;
  /// Returns true if a session began after `from` and not after `to`.
  [[nodiscard]] bool has_begin_between(double from, double to) const noexcept;

private:
  struct session {
    double begin = 0;          // of its first event
    std::int64_t reached = 0;  // the greatest step, at first that of the START
    series steps;              // over seconds since 1970
  };

  std::vector<session> sessions_;
  bool is_new_file_ = true;  // the next event begins a session
};

}  // namespace stepwell::tool
