// SPDX-License-Identifier: Apache-2.0
//
// A hook that displays the progress of training: a line with a bar on a terminal, otherwise a plain line from time to time.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hooks/detail/kept_numbers.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/run_ending.hpp"
#include "stepwell/protocol/watched_values.hpp"

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
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {
class status_line;
class status_region;
}  // namespace detail

/// Options of `progress_hook`. Every option has a default.
struct progress_options {
  std::int64_t last_step = 0;     ///< Global step at which the training ends, for the bar and the remaining time; 0: unknown.
  std::int64_t last_epoch = 0;    ///< The number of epochs; 0: unknown.
  std::int64_t batch_size = 0;    ///< Samples in each step, for the rate of samples; 0: unknown.
  seconds_value bar_every = 0.1;  ///< Time between two updates of the line on a terminal.
  seconds_value line_every = 10;  ///< Time between two plain lines, if there is no terminal.
  std::optional<bool> is_terminal = std::nullopt;  ///< Default: whether standard error is a terminal and TERM is not "dumb".
  std::optional<bool> colours = std::nullopt;      ///< Default: true on a terminal, unless NO_COLOR is set.
  std::optional<bool> unicode = std::nullopt;      ///< Default: whether the locale of the environment has UTF-8.
  int columns = 0;                                 ///< Width in columns. 0: the width of the terminal, or 80 if unknown.
  bool epoch_lines = true;                         ///< Whether to print a line for each epoch, with the values of its last step.
  bool summary = true;                             ///< Whether a summary of the run follows the final line.
  /// Function that writes the output. Null: the output is written to standard error, where all sessions share the last lines of the
  /// terminal.
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
  std::int64_t first_step = 0;  ///< The step at which the session began. A recovery to an earlier step makes it that step.
  std::int64_t step = 0;
  std::int64_t last_step = 0;                                   ///< 0: unknown.
  std::optional<data::epoch_position> epoch = std::nullopt;     ///< Empty: the source has no epochs.
  std::int64_t last_epoch = 0;                                  ///< 0: unknown.
  std::vector<progress_value> values = {};                      ///< The watched values, for example the loss.
  double steps_per_second = 0;                                  ///< Recent rate; 0: not known yet.
  std::int64_t batch_size = 0;                                  ///< Samples in each step; 0: unknown.
  std::chrono::duration<double> elapsed = {};                   ///< Time since the session began.
  std::vector<std::pair<std::string, std::string>> notes = {};  ///< Names and texts of `session_requests::show`.
  bool has_ended = false;                                       ///< True: the final line, which has no remaining time.
};

/// The form of a progress line.
struct progress_style {
  bool is_terminal = false;  ///< True: a bar, and fields of fixed width; false: a plain line.
  int columns = 80;          ///< Width of the terminal. A line for a terminal is at most `columns - 1` wide.
  bool colours = false;
  bool unicode = false;
};

/// Returns a plain line such as "step 1200/10000 12% loss 0.1234 410 steps/s 0:03 ETA 0:21", or a line for a terminal. On a terminal, each
/// field has a fixed width, so that nothing moves while numbers change. If the terminal is too narrow, the less important fields are left
/// out. The notes, the name of the session and the rate of samples are left out first. The step and the first value are kept longest.
[[nodiscard]] std::string progress_line(const progress_state& state, const progress_style& style);

/// Returns a line such as "finished at step 12 (no data left): 12 steps in 0:12, loss 78, best error 4, checkpoint run/model.ckpt-12".
[[nodiscard]] std::string progress_summary(const progress_state& state, const run_ending& ending);

/// Writes progress lines to a terminal or a file. This part of the hook does not depend on a session.
class progress_printer {
public:
  /// `names` are the names of the values.
  /// @errors `invalid_argument_error` if an option is negative; the message names the option.
  explicit progress_printer(progress_options options, std::vector<std::string> names = {});
  progress_printer(progress_printer&&) noexcept;
  progress_printer& operator=(progress_printer&&) = delete;
  ~progress_printer();

  /// Begins the display of a session: steps and time count from the next call of `start`.
  void begin() noexcept { has_started_ = false; }
  /// Call this function after each creation of the session.
  void start(const session_requests& session, std::int64_t step);
  /// Returns the names of the values.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Returns true if the values of `step` should be displayed. Also returns true for `last_step`, because the final line displays its
  /// values, and for the last step of an epoch. `epoch` is the epoch of the step.
  [[nodiscard]] bool is_due(std::int64_t step, const std::optional<data::epoch_position>& epoch) const noexcept {
    return timer_.should_trigger_for_step(step) || step == options_.last_step || (epoch && epoch->is_last && options_.epoch_lines);
  }
  /// Returns true after the last step of an epoch, until `write_epoch` has written its line.
  [[nodiscard]] bool has_epoch_line() const noexcept { return epoch_line_.has_value(); }
  /// Writes the line of the last epoch. Call this function before the next step, when the evaluation of the epoch is done. `newest` has an
  /// element for each value: the current number, or an empty optional if the value is known only in a run.
  void write_epoch(const session_requests& session, const std::vector<std::optional<double>>& newest);
  /// Displays the values of `step`. If a value is empty, its previous value is displayed.
  void show(const session_requests& session, std::int64_t step, const std::vector<std::optional<double>>& values);
  /// Makes the session write the final line and the summary at its close, when all checkpoints are durable. Nothing is written if the
  /// session did no step and displayed no line. `at_end` has an element for each value: the number at the close, or an empty optional if
  /// the value is known only in a run. For a value without a number in `at_end`, the number that was displayed last is displayed again. If
  /// it belongs to an earlier step, that step is displayed, too. The epoch is displayed only if the last step is part of it.
  /// @lifetime This object must not be moved between this call and the close.
  void finish(const session_requests& session, std::int64_t step, std::vector<std::optional<double>> at_end = {});
  /// Ends the line on the terminal, so that an error message begins on a line of its own.
  void interrupt();
  void print(std::string_view text);

private:
  class ending;
  void measure(const session_requests& session, std::int64_t step);
  void write_final(const session_requests& session, const run_ending& ending, std::int64_t step,
                   const std::vector<std::optional<double>>& at_end);
  void write();

  progress_options options_;
  progress_style style_;
  progress_state state_;
  std::shared_ptr<clock> clock_;
  bool has_started_ = false;
  clock::time_point started_;
  second_or_step_timer timer_;
  bool is_written_ = false;                   // true if the newest state was displayed
  std::optional<progress_state> epoch_line_;  // of an epoch that has ended, until its line is written
  std::int64_t values_step_ = -1;             // step of the values that were displayed last
  std::shared_ptr<detail::status_region> region_;
  std::unique_ptr<detail::status_line> line_;  // empty unless a line is on the terminal
};

namespace detail {

/// Returns the number to which `watched` refers between two runs: a metric of an evaluation, or a member of the model. Returns an empty
/// optional for everything else, which is known only in a run.
template<class Watched, class Raw>
std::optional<double> value_at_end(const Watched& watched, Raw& raw) {
  if constexpr (std::is_same_v<Watched, evaluated_value>) {
    return watched.value();
  } else if constexpr (std::is_member_pointer_v<Watched> && requires { std::invoke(watched, detail::subject_in_raw(raw)); }) {
    [[maybe_unused]] const auto alone = detail::alone_with(raw);
    return detail::as_number(std::invoke(watched, detail::subject_in_raw(raw)));
  } else {
    return std::nullopt;
  }
}

}  // namespace detail

/// Displays a bar with step, epoch, rates, times and named values:
/// `progress_hook{{.last_step = 1000}, tag("loss", &result::loss), tag("accuracy", &result::accuracy)}`. A metric of an evaluation has its
/// own name. Any other value without a name is called "loss". Values are fetched only in the runs that display them. If a value is an empty
/// `std::optional`, its previous value is displayed.
/// At the close, a final line and a summary of the run are written: the reason of the end, the steps, the time, the last values, and where
/// the newest checkpoint is.
/// The line also has the notes of the session: texts such as the last checkpoint and the last evaluation, see `session_requests::show`.
///
/// All sessions of a process share the last lines of the terminal. Log messages, and text of `print` and `print_line`, are printed above
/// these lines. If a run fails, or the session or the program ends, the line is ended, so that an error message begins on a new line. If
/// standard error is not a terminal (for example a file or a pipe), the hook writes plain lines. In a loop over epochs, the hook prints a
/// plain line for each epoch, before the first step of the next epoch. The line includes the result of an evaluation that was made after
/// the epoch.
/// @cost Two relaxed loads for each run, and a copy of each value that is a number in the result or in the model, for the final line. In a
/// loop over epochs, also one call of `is_last_of_epoch` of the source.
template<class... Watched>
class progress_hook {
  using numbers_type = detail::kept_numbers<detail::fetch_of<Watched>...>;

public:
  static constexpr auto phase = hook_phase::observe;

  explicit progress_hook(progress_options options, Watched... watched)
      : printer_(std::move(options), {detail::name_of(watched, "loss")...}), watched_(stepwell::fetch(detail::untagged(watched)...)) {}
  /// Uses the default options.
  explicit progress_hook(Watched... watched) : progress_hook(progress_options{}, std::move(watched)...) {}

  void begin() { printer_.begin(); }
  void after_create_session(auto& session, auto& /*threads*/) {
    printer_.start(session, session.global_step());
    kept_step_.reset();
    publisher_.start(session.watched(), printer_.names());
  }
  auto before_run(auto& context) {
    if (printer_.has_epoch_line()) [[unlikely]] { printer_.write_epoch(context, known_values(context)); }
    is_due_ = printer_.is_due(context.global_step() + 1, context.epoch()) || context.is_last_run();
    return is_due_ || publisher_.is_wanted() ? std::optional(watched_) : std::nullopt;
  }
  void after_run(auto& context, const auto& values) {
    if (values.has_value()) [[unlikely]] { show(context, values, std::index_sequence_for<Watched...>{}); }
    if constexpr (!numbers_type::is_empty) {
      if (is_due_) { return kept_step_.reset(); }
      std::apply([&](const auto&... watched) { numbers_.keep(values, watched...); }, watched_.projections);
      kept_step_ = context.global_step();
    }
  }
  void on_error(auto& /*context*/, const std::exception_ptr& /*failure*/) { printer_.interrupt(); }
  void end(auto& session) {
    auto known = known_values(session);
    if constexpr (!numbers_type::is_empty) {
      if (kept_step_ == session.global_step()) { add_kept(known, std::index_sequence_for<Watched...>{}); }
    }
    printer_.finish(session, session.global_step(), std::move(known));
  }

  /// Writes `text` and a line feed to standard output (or to `progress_options::output`), above the progress lines.
  void print(std::string_view text) { printer_.print(text); }

private:
  /// Returns the numbers that are known between two runs.
  std::vector<std::optional<double>> known_values(auto& session) const {
    std::vector<std::optional<double>> all;
    watched_.for_each([&](const auto& watched) { all.push_back(detail::value_at_end(watched, session.raw_session())); });
    return all;
  }
  /// Adds the numbers of the last run.
  template<std::size_t... I>
  void add_kept(std::vector<std::optional<double>>& known, std::index_sequence<I...> /*all*/) const {
    const auto add = [](std::optional<double>& to, const auto& number) {
      if constexpr (!numbers_type::template is_missing<decltype(number)>) {
        if (!to) { to = detail::as_number(number); }
      }
    };
    (add(known[I], numbers_.template get<I>()), ...);
  }
  template<std::size_t... I>
  void show(auto& context, const auto& values, std::index_sequence<I...>) {
    const std::vector<std::optional<double>> numbers{detail::as_number(values.template get<I>())...};
    publisher_.publish(numbers, context.global_step());
    if (is_due_) { printer_.show(context, context.global_step(), numbers); }
  }

  progress_printer printer_;
  fetch_pack<detail::fetch_of<Watched>...> watched_;
  value_publisher publisher_;
  bool is_due_ = false;
  numbers_type numbers_;                   // of the run to `kept_step_`
  std::optional<std::int64_t> kept_step_;  // empty: no run since the creation, or its values were displayed
};

}  // namespace stepwell
