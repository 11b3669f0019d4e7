// SPDX-License-Identifier: Apache-2.0
//
// Shows a person how far training is: a bar on a terminal, a plain line now and then elsewhere.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {

/// Everything has a default.
struct progress_options {
  std::int64_t last_step = 0;                              ///< For bar and time left; 0: not known.
  seconds_value bar_every = 0.1;                           ///< On a terminal.
  seconds_value line_every = 10;                           ///< Elsewhere.
  std::optional<bool> is_terminal = std::nullopt;          ///< Not said: asked of standard error.
  int columns = 0;                                         ///< 0: asked of the terminal, else 80.
  std::function<void(std::string_view)> output = nullptr;  ///< Empty: standard error.
};

/// What a progress line says.
struct progress_state {
  std::int64_t first_step = 0;  ///< Where this session started.
  std::int64_t step = 0;
  std::int64_t last_step = 0;                  ///< 0: not known.
  std::optional<double> value = std::nullopt;  ///< The watched one, e.g. the loss.
  std::chrono::duration<double> elapsed{};
  double steps_per_second = 0;  ///< Lately; 0: not known yet.
};

/// "step 1200/10000  12%  loss 0.1234  410 steps/s  ETA 0:21", as a bar of at most `columns` characters where there is
/// room for one.
[[nodiscard]] std::string progress_line(const progress_state& state, bool with_bar, int columns);

/// Writes progress lines to a terminal or a file; the part of the hook that knows no session.
class progress_printer {
public:
  /// @errors `invalid_argument_error` naming the option that is negative.
  explicit progress_printer(progress_options options);

  void start(std::int64_t step, const std::shared_ptr<clock>& source);
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return timer_.should_trigger_for_step(step); }
  void show(std::int64_t step, std::optional<double> value);
  /// The last word: the whole line, and a line end.
  void finish(std::int64_t step);

private:
  void write(const std::string& line, bool is_last);

  progress_options options_;
  bool is_terminal_;
  progress_state state_;
  std::shared_ptr<clock> clock_;
  clock::time_point started_;
  second_or_step_timer timer_;
  bool shown_ = false;
};

/// A bar with step, rate, value and time left; the value is fetched only when it is shown. `progress_hook{{.last_step =
/// 1000}, &result::loss}`, or without a value.
/// @cost One relaxed load a run.
template<class Projection = void>
class progress_hook {
public:
  static constexpr auto phase = hook_phase::observe;

  explicit progress_hook(progress_options options, Projection watched)
      : printer_(std::move(options)), watched_(stepwell::fetch(std::move(watched))) {}

  void after_create_session(auto& session, auto& /*threads*/) { printer_.start(session.global_step(), session.time()); }
  auto before_run(auto& context) { return printer_.is_due(context.global_step() + 1) ? std::optional(watched_) : std::nullopt; }
  void after_run(auto& context, const auto& values) {
    if (values.has_value()) { printer_.show(context.global_step(), static_cast<double>(values.value())); }
  }
  void end(auto& session) { printer_.finish(session.global_step()); }

private:
  progress_printer printer_;
  fetch_pack<Projection> watched_;
};

template<>
class progress_hook<void> {
public:
  static constexpr auto phase = hook_phase::observe;

  explicit progress_hook(progress_options options = {}) : printer_(std::move(options)) {}

  void after_create_session(auto& session, auto& /*threads*/) { printer_.start(session.global_step(), session.time()); }
  void after_run(auto& context, const auto&) {
    if (printer_.is_due(context.global_step())) { printer_.show(context.global_step(), std::nullopt); }
  }
  void end(auto& session) { printer_.finish(session.global_step()); }

private:
  progress_printer printer_;
};

template<class Projection>
progress_hook(progress_options, Projection) -> progress_hook<Projection>;
progress_hook(progress_options) -> progress_hook<void>;
progress_hook() -> progress_hook<void>;

}  // namespace stepwell
