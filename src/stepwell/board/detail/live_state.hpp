// SPDX-License-Identifier: Apache-2.0
//
// The state of a session that trains now: what its hook reports, and the events for the clients of the server.
#pragma once

#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/board/detail/curve.hpp"
#include "stepwell/board/detail/run_history.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/protocol/session_metrics.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::board {

/// Means of the parts of recently measured steps, in seconds.
struct step_time {
  std::size_t samples = 0;
  double model = 0;
  double data = 0;
  double io = 0;
  double other = 0;
  std::vector<std::pair<std::string, double>> hooks = {};

  [[nodiscard]] double step() const;
};

/// The place of this process in its group.
struct group_place {
  int rank = 0;
  int size = 1;
  std::int64_t generation = 0;
  int launched = 1;          ///< Number of processes that the launcher has started.
  std::vector<int> members;  ///< The launcher's ranks of the processes that train now.
};

/// What the session's thread knows about the session at one moment.
struct session_view {
  double time = 0;  ///< When the session was looked at, in seconds since 1970.
  std::string phase = "starting";
  double started = 0;
  std::int64_t first_step = 0;
  std::int64_t step = 0;
  std::optional<std::int64_t> last_step;
  std::optional<double> steps_per_second;
  std::optional<std::string> stopping_because;
  std::optional<data::epoch_position> epoch;
  std::optional<std::string> restored_from;
  std::vector<history_value> watched;
  std::vector<stop_condition> stop_conditions;  ///< Without the last step. The times that are left are those of `time`.
  std::optional<group_place> group;
  std::vector<std::pair<std::string, std::string>> notes;
  std::optional<board::step_time> step_time;
  session_metrics metrics;
};

struct log_line {
  std::uint64_t number = 0;
  double time = 0;
  log_level level = log_level::info;
  std::string text;
};

/// A request of a client for something that the session does between two steps.
struct action_record {
  std::uint64_t id = 0;
  std::string action;  ///< checkpoint, stop or trace
  std::string state = "pending";
  double requested = 0;
  std::optional<double> finished = std::nullopt;
  std::optional<std::int64_t> step = std::nullopt;
  std::string text = {};
  bool has_trace = false;
  std::int64_t steps = 0;  ///< Of a trace: the number of steps that are left.
};

/// The state that the session's thread writes and the server's thread reads.
/// @threads Any.
class live_state {
public:
  struct event {
    std::uint64_t id;
    std::string kind;
    std::string data;  ///< JSON
  };

  // ---- for the session's thread
  /// Sets the view, and adds the watched values that are new to the curves.
  void set(session_view view);
  void set_phase(std::string phase);
  void add_mark(run_mark mark);
  void add_log(double time, log_level level, std::string_view text);
  /// Calls `act` with each action that is pending. Actions whose state it changes are finished at `now`. A trace that it returns is kept for
  /// the action. `act` must not use this object.
  void each_pending(double now, const std::function<std::optional<run_metadata>(action_record&)>& act);
  /// @cost One relaxed load if no action is pending.
  [[nodiscard]] bool has_pending() const noexcept { return pending_.load(std::memory_order_relaxed) > 0; }

  // ---- for the server's thread
  [[nodiscard]] session_view view() const;
  /// Returns a number that changes with each `set`.
  [[nodiscard]] std::uint64_t version() const;
  [[nodiscard]] std::vector<run_mark> marks() const;
  /// Calls `use` with the curve of each watched value, as far as the session was looked at. `use` must not use this object.
  void each_curve(const std::function<void(const std::string&, const curve&)>& use) const;
  /// Returns the points of the watched value `name` after the step `after`, or all of them, as far as the session was looked at. The event
  /// files get these values with their next flush.
  [[nodiscard]] curve later_points(std::string_view name, std::optional<std::int64_t> after) const;
  [[nodiscard]] std::vector<log_line> log_after(std::uint64_t number) const;
  /// Adds an action. Returns nothing if such an action is pending.
  [[nodiscard]] std::optional<action_record> request(std::string action, std::int64_t steps, double now, std::string text);
  [[nodiscard]] std::vector<action_record> actions() const;
  [[nodiscard]] std::optional<action_record> action(std::uint64_t id) const;
  [[nodiscard]] std::optional<run_metadata> trace(std::uint64_t action) const;

  // ---- events for clients, in a ring
  void add_event(std::string kind, std::string data);
  /// Returns the events after the event `last`. `is_skipped` is set to true if some of them are no longer known.
  [[nodiscard]] std::vector<event> events_after(std::uint64_t last, bool& is_skipped) const;
  [[nodiscard]] std::uint64_t newest_event() const;
  /// Calls `action` when log lines, marks or actions have changed since the last call: JSON is made on the server's thread only.
  struct changes {
    std::vector<log_line> lines;
    std::vector<run_mark> marks;
    std::vector<action_record> actions;
  };
  [[nodiscard]] changes take_changes();

private:
  mutable stepwell::detail::checked_mutex mutex_;
  session_view view_ STEPWELL_GUARDED_BY(mutex_);
  std::uint64_t version_ STEPWELL_GUARDED_BY(mutex_) = 0;
  std::vector<run_mark> marks_ STEPWELL_GUARDED_BY(mutex_);
  std::map<std::string, curve, std::less<>> curves_ STEPWELL_GUARDED_BY(mutex_);
  std::deque<log_line> log_ STEPWELL_GUARDED_BY(mutex_);
  std::uint64_t lines_ STEPWELL_GUARDED_BY(mutex_) = 0;
  std::deque<action_record> actions_ STEPWELL_GUARDED_BY(mutex_);  // the newest first
  std::uint64_t last_action_ STEPWELL_GUARDED_BY(mutex_) = 0;
  std::atomic<int> pending_ = 0;
  std::deque<std::pair<std::uint64_t, run_metadata>> traces_ STEPWELL_GUARDED_BY(mutex_);
  std::deque<event> events_ STEPWELL_GUARDED_BY(mutex_);
  std::uint64_t last_event_ STEPWELL_GUARDED_BY(mutex_) = 0;
  changes changes_ STEPWELL_GUARDED_BY(mutex_);
};

}  // namespace stepwell::board
