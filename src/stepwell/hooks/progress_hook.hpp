// SPDX-License-Identifier: Apache-2.0
//
// A hook that displays the progress of training: a bar on a terminal, otherwise a plain line from time to time.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {

/// Options of `progress_hook`. Every option has a default.
struct progress_options {
  std::int64_t last_step = 0;                              ///< For the bar and the remaining time; 0: unknown.
  seconds_value bar_every = 0.1;                           ///< Period on a terminal.
  seconds_value line_every = 10;                           ///< Period elsewhere.
  std::optional<bool> is_terminal = std::nullopt;          ///< Empty: true if standard error is a terminal.
  int columns = 0;                                         ///< 0: the width of the terminal, or 80 if unknown.
  std::function<void(std::string_view)> output = nullptr;  ///< Null: standard error.
};

/// The data of a progress line.
struct progress_state {
  std::int64_t first_step = 0;  ///< The step at which this session started.
  std::int64_t step = 0;
  std::int64_t last_step = 0;                  ///< 0: unknown.
  std::optional<double> value = std::nullopt;  ///< The watched value, for example the loss.
  double steps_per_second = 0;                 ///< Recent rate; 0: not known yet.
};

/// Returns "step 1200/10000 12% loss 0.1234 410 steps/s ETA 0:21". If `with_bar` is true, the line is shorter than `columns` characters,
/// and begins with a bar if there is enough space.
[[nodiscard]] std::string progress_line(const progress_state& state, bool with_bar, int columns);

/// Writes progress lines to a terminal or a file. This part of the hook does not depend on a session.
class progress_printer {
public:
  /// @errors `invalid_argument_error` if an option is negative; the message names the option.
  explicit progress_printer(progress_options options);

  void start(std::int64_t step, const std::shared_ptr<clock>& source);
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return timer_.should_trigger_for_step(step); }
  void show(std::int64_t step, std::optional<double> value);
  /// Writes the final line, and ends it.
  void finish(std::int64_t step);

private:
  void write(bool is_last);

  progress_options options_;
  bool is_terminal_;
  progress_state state_;
  std::shared_ptr<clock> clock_;
  clock::time_point started_;
  second_or_step_timer timer_;
  bool shown_ = false;
};

/// Displays a bar with step, rate, one watched value and remaining time: `progress_hook{{.last_step = 1000}, &result::loss}`. The value may
/// be omitted. It is fetched only in the runs that display it. If it is an empty `std::optional`, the previous value is displayed.
/// @cost One relaxed load for each run.
template<class... Watched>
class progress_hook {
  static_assert(sizeof...(Watched) <= 1, "stepwell: progress_hook displays one value");

public:
  static constexpr auto phase = hook_phase::observe;

  explicit progress_hook(progress_options options = {}, Watched... watched)
      : printer_(std::move(options)), watched_(stepwell::fetch(std::move(watched)...)) {}

  void after_create_session(auto& session, auto& /*threads*/) { printer_.start(session.global_step(), session.time()); }
  auto before_run(auto& context) { return printer_.is_due(context.global_step() + 1) ? std::optional(watched_) : std::nullopt; }
  void after_run(auto& context, const auto& values) {
    if (!values.has_value()) { return; }
    if constexpr (sizeof...(Watched) == 1) {
      if (const auto value = detail::as_number(values.value())) { value_ = value; }
      printer_.show(context.global_step(), value_);
    } else {
      printer_.show(context.global_step(), std::nullopt);
    }
  }
  void end(auto& session) { printer_.finish(session.global_step()); }

private:
  progress_printer printer_;
  fetch_pack<Watched...> watched_;
  std::optional<double> value_;  // the last one
};

}  // namespace stepwell
