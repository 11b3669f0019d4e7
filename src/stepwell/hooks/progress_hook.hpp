// SPDX-License-Identifier: Apache-2.0
//
// A hook that displays the progress of training: a line with a bar on a terminal, otherwise a plain line from time to time.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {
class status_line;
class status_region;
}  // namespace detail

/// Options of `progress_hook`. Every option has a default.
struct progress_options {
  std::int64_t last_step = 0;                      ///< For the bar and the remaining time; 0: unknown.
  std::int64_t last_epoch = 0;                     ///< The number of epochs; 0: unknown.
  std::int64_t batch_size = 0;                     ///< Samples in each step, for the rate of samples; 0: unknown.
  seconds_value bar_every = 0.1;                   ///< Period on a terminal.
  seconds_value line_every = 10;                   ///< Period elsewhere.
  std::optional<bool> is_terminal = std::nullopt;  ///< Empty: true if standard error is a terminal, and TERM is not "dumb".
  std::optional<bool> colours = std::nullopt;      ///< Empty: true on a terminal, unless NO_COLOR is set.
  std::optional<bool> unicode = std::nullopt;      ///< Empty: true if the locale of the environment has UTF-8.
  int columns = 0;                                 ///< 0: the width of the terminal, or 80 if unknown.
  /// Null: standard error, where all sessions and the log share the last lines of the terminal.
  std::function<void(std::string_view)> output = nullptr;
};

/// A value with a name. The value is empty until it is known.
struct progress_value {
  std::string name;
  std::optional<double> value = std::nullopt;
};

/// The data of a progress line.
struct progress_state {
  std::string session = {};     ///< The name of the session; may be empty.
  std::int64_t first_step = 0;  ///< The step at which this session started.
  std::int64_t step = 0;
  std::int64_t last_step = 0;                                   ///< 0: unknown.
  std::optional<data::epoch_position> epoch = std::nullopt;     ///< Empty: the source has no epochs.
  std::int64_t last_epoch = 0;                                  ///< 0: unknown.
  std::vector<progress_value> values = {};                      ///< The watched values, for example the loss.
  double steps_per_second = 0;                                  ///< Recent rate; 0: not known yet.
  std::int64_t batch_size = 0;                                  ///< Samples in each step; 0: unknown.
  std::chrono::duration<double> elapsed = {};                   ///< Since the start of the session.
  std::vector<std::pair<std::string, std::string>> notes = {};  ///< See `session_requests::show`.
};

/// The form of a progress line.
struct progress_style {
  bool is_terminal = false;  ///< A bar, and fields of fixed width; false: a plain line.
  int columns = 80;          ///< A line on a terminal is shorter.
  bool colours = false;
  bool unicode = false;
};

/// Returns a plain line such as "step 1200/10000 12% loss 0.1234 410 steps/s 0:03 ETA 0:21", or a line for a terminal. On a terminal, each
/// field has a fixed width, so that nothing moves while numbers change. If the terminal is too narrow, the less important fields are left
/// out: first the notes and the rate of samples, last the values and the step.
[[nodiscard]] std::string progress_line(const progress_state& state, const progress_style& style);

/// Writes progress lines to a terminal or a file. This part of the hook does not depend on a session.
class progress_printer {
public:
  /// @errors `invalid_argument_error` if an option is negative; the message names the option.
  /// `names` are the names of the values.
  explicit progress_printer(progress_options options, std::vector<std::string> names = {});
  progress_printer(progress_printer&&) noexcept;
  progress_printer& operator=(progress_printer&&) = delete;
  ~progress_printer();

  void start(const session_requests& session, std::int64_t step);
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return timer_.should_trigger_for_step(step); }
  /// Displays the values of `step`. An empty value leaves the previous one.
  void show(const session_requests& session, std::int64_t step, const std::vector<std::optional<double>>& values);
  /// Writes the final line, and ends it.
  void finish(const session_requests& session, std::int64_t step);
  /// Ends the line on the terminal, so that an error message begins on a line of its own.
  void interrupt();
  void print(std::string_view text);

private:
  void measure(const session_requests& session, std::int64_t step);
  void write();

  progress_options options_;
  progress_style style_;
  progress_state state_;
  std::shared_ptr<clock> clock_;
  clock::time_point started_;
  second_or_step_timer timer_;
  bool shown_ = false;
  std::shared_ptr<detail::status_region> region_;
  std::unique_ptr<detail::status_line> line_;  // empty unless a line is on the terminal
};

namespace detail {

template<class Projection>
std::string progress_name(const tagged<Projection>& given) {
  return given.name;
}
template<class Projection>
std::string progress_name(const Projection& /*given*/) {
  return "loss";
}

}  // namespace detail

/// Displays a bar with step, epoch, rates, times and named values:
/// `progress_hook{{.last_step = 1000}, tag("loss", &result::loss), tag("accuracy", &result::accuracy)}`. A value without a name is called
/// "loss". Values are fetched only in the runs that display them. If one is an empty `std::optional`, the previous value is displayed. The
/// line also has the notes of the session, such as the last checkpoint and the last evaluation; see `session_requests::show`.
///
/// All sessions of a process share the last lines of the terminal. Log messages, and text of `print` and `print_line`, are printed above
/// them. If a run fails or the session ends, the line is ended first. Elsewhere, in files and pipes, plain lines are written.
/// @cost One relaxed load for each run.
template<class... Watched>
class progress_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  explicit progress_hook(progress_options options = {}, Watched... watched)
      : printer_(std::move(options), {detail::progress_name(watched)...}), watched_(stepwell::fetch(std::move(watched)...)) {}

  void after_create_session(auto& session, auto& /*threads*/) { printer_.start(session, session.global_step()); }
  auto before_run(auto& context) { return printer_.is_due(context.global_step() + 1) ? std::optional(watched_) : std::nullopt; }
  void after_run(auto& context, const auto& values) {
    if (values.has_value()) [[unlikely]] { show(context, values, std::index_sequence_for<Watched...>{}); }
  }
  void on_error(auto& /*context*/, const std::exception_ptr& /*failure*/) { printer_.interrupt(); }
  void end(auto& session) { printer_.finish(session, session.global_step()); }

  /// Writes `text` and a line feed to standard output (or to `progress_options::output`), above the progress lines.
  void print(std::string_view text) { printer_.print(text); }

private:
  template<std::size_t... I>
  void show(auto& context, const auto& values, std::index_sequence<I...>) {
    printer_.show(context, context.global_step(), {detail::as_number(values.template get<I>())...});
  }

  progress_printer printer_;
  fetch_pack<Watched...> watched_;
};

}  // namespace stepwell
