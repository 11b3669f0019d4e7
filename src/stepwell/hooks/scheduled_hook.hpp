// SPDX-License-Identifier: Apache-2.0
//
// Hooks that set a number of the model, usually the learning rate. `scheduled_hook` computes the number from the step.
// `reduce_on_plateau_hook` reduces the number when a metric no longer improves.
#pragma once

#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/detail/unset.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/schedules/schedules.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell {
namespace detail {

/// A target that selects a number of the model `Subject`.
template<class Target, class Subject>
concept selects_number =
    std::invocable<const Target&, Subject> && std::is_lvalue_reference_v<std::invoke_result_t<const Target&, Subject>> &&
    std::is_arithmetic_v<std::remove_cvref_t<std::invoke_result_t<const Target&, Subject>>>;

/// Returns the number of the model that `target` selects.
template<class Target, class Raw>
auto& number_in(const Target& target, Raw& raw) {
  using subject = decltype(detail::subject_in_raw(raw));
  static_assert(selects_number<Target, subject>,
                "stepwell: a rate is set in a number of the model: &model::rate, a callable that takes the model and returns a reference "
                "to a number, or a callable that takes the rate");
  return std::invoke(target, detail::subject_in_raw(raw));
}

/// If `target` takes a number, calls it with `value`. Otherwise assigns `value` to the number of the model that `target` selects; no other
/// session steps the model during the assignment.
template<class Target, class Session>
void set_target(const Target& target, Session& session, double value) {
  if constexpr (std::invocable<const Target&, double>) {
    std::invoke(target, value);
  } else {
    auto& raw = session.raw_session();
    [[maybe_unused]] const auto alone = detail::alone_with(raw);
    auto& number = detail::number_in(target, raw);
    number = static_cast<std::remove_reference_t<decltype(number)>>(value);
  }
}

}  // namespace detail

/// The hook that `scheduled` returns.
template<class Target, schedules::schedule Schedule>
class scheduled_hook {
public:
  static constexpr auto phase = hook_phase::observe;  // the first phase: the hooks that follow read the rate of this run

  scheduled_hook(Target target, Schedule schedule) : target_(std::move(target)), schedule_(std::move(schedule)) {}

  void before_run(auto& context) { detail::set_target(target_, context, static_cast<double>(schedule_(context.global_step()))); }

private:
  Target target_;
  Schedule schedule_;
};

/// Returns a hook that computes a rate before each run and stores it in `target`. The rate is `schedule(step)`; `step` is the global step
/// before the run, so the first run of a training has the rate `schedule(0)`. The target is a member of the model, a callable that takes
/// the model and returns a reference to a number, or a callable that takes the rate:
///
///     scheduled(&model::rate, schedules::cosine_decay({.initial = 0.1, .decay_steps = 1000}))
///
/// The schedule is any function of the step; see schedules.hpp. A resumed run computes the same rates from the steps, so the rate need not
/// be a variable of the model.
/// @cost One call of the schedule for each run.
template<class Target, schedules::schedule Schedule>
[[nodiscard]] scheduled_hook<Target, Schedule> scheduled(Target target, Schedule schedule) {
  return scheduled_hook<Target, Schedule>(std::move(target), std::move(schedule));
}

/// Options of `reduce_on_plateau_hook`.
struct reduce_on_plateau_hook_options {
  /// Options of the rule that decides when and how much the rate is reduced.
  schedules::reduce_on_plateau_options plateau = {};
  /// The rule gets the watched value after each run in which the global step reaches a multiple of this number. If a run does several steps
  /// and passes a multiple, the rule gets the value after that run or the next one. If a `std::optional` value is empty in such a run, the
  /// rule gets the next value. Not used for the metric of an evaluation: the rule gets each result. Must be above zero.
  std::int64_t every_n_steps = 1;
  std::string name = "reduce_on_plateau";  ///< The name under which checkpoints store the state of the hook.
};

namespace detail {

/// Checks the options other than `plateau`.
/// @errors `invalid_argument_error` that names the invalid member.
void check_plateau_hook(const reduce_on_plateau_hook_options& options);
/// Logs that the rate was reduced from `from` to `to`, with the name of the session.
void log_reduction(const session_requests& session, double from, double to, std::int64_t step);

}  // namespace detail

/// Watches a number, and reduces a rate of the model when the number no longer improves, by the rule `schedules::reduce_on_plateau`:
///
///     reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 3}}, &model::rate, &result::validation_loss}
///
/// Runs in which a `std::optional` number is empty are ignored. The state of the rule and the reduced rate are saved in checkpoints, and a
/// resumed run continues with the reduced rate. The hook can also watch a metric that an `evaluate_every` hook measures:
/// `reduce_on_plateau_hook{&model::rate, tested.value("loss")}`. The rule gets each result once.
/// @errors `failed_precondition_error`, thrown by the creation of the session, if the session does not have the `evaluate_every` hook that
///         measures the metric.
/// @cost The number is fetched only in runs after which the rule gets it.
template<class Target, class Watched>
class reduce_on_plateau_hook {
public:
  static constexpr auto phase = hook_phase::guard;
  using requests_only = reduce_on_plateau_hook;

  /// @errors `invalid_argument_error` that names the invalid member.
  reduce_on_plateau_hook(const reduce_on_plateau_hook_options& options, Target target, Watched watched)
      : target_(std::move(target)), watched_(detail::untagged(watched), options.every_n_steps), name_(options.name),
        plateau_(options.plateau) {
    static_assert(!std::invocable<const Target&, double>, "stepwell: reduce_on_plateau_hook also reads the rate; give it a member");
    detail::check_plateau_hook(options);
  }
  /// Uses the default options.
  reduce_on_plateau_hook(Target target, Watched watched)
      : reduce_on_plateau_hook(reduce_on_plateau_hook_options{}, std::move(target), std::move(watched)) {}

  void begin() noexcept {
    plateau_.reset();
    rate_ = detail::unset_number;
    unreduced_ = applied_ = std::nullopt;
  }
  void after_create_session(auto& session, auto& /*threads*/) {
    const auto known = watched_.start(session, "reduce_on_plateau_hook");
    restore_rate(session);
    if (known) { take(session, known->number); }
  }
  auto before_run(auto& context) { return watched_.request(context); }
  void after_run(auto& context, const auto& values) {
    if (const auto value = watched_.take(context, values)) { take(context, value->number); }
  }

  [[nodiscard]] const schedules::reduce_on_plateau& plateau() const noexcept { return plateau_; }
  [[nodiscard]] variable_list variables() { return stepwell::variables({{"plateau", plateau_.variables()}, {"rate", rate_}}); }
  [[nodiscard]] const std::string& state_name() const noexcept { return name_; }

private:
  /// Sets the rate that was reduced before the session was created. If the restored state is older than the first reduction, sets the rate
  /// that the model had before that reduction, unless the restore of the model has already set the rate.
  void restore_rate(auto& session) {
    const double now = current(session);
    if (!detail::is_nan(rate_)) {
      apply(session, rate_, now);
    } else {
      if (now == applied_) { detail::set_target(target_, session, *unreduced_); }
      unreduced_ = applied_ = std::nullopt;
    }
  }
  /// Gives a value to the rule, and sets the rate if the rule reduces it.
  void take(auto& context, double value) {
    const auto rate = detail::number_in(target_, context.raw_session());
    const auto before = static_cast<double>(rate);
    const auto after = static_cast<double>(plateau_.update(value, rate));
    if (after == before) { return; }
    rate_ = after;
    apply(context, after, before);
    detail::log_reduction(context, before, after, context.global_step());
  }
  [[nodiscard]] double current(auto& session) const { return static_cast<double>(detail::number_in(target_, session.raw_session())); }
  void apply(auto& session, double rate, double before) {
    if (!unreduced_) { unreduced_ = before; }
    detail::set_target(target_, session, rate);
    applied_ = current(session);
  }

  Target target_;
  detail::watched_number<detail::fetch_of<Watched>> watched_;
  std::string name_;
  schedules::reduce_on_plateau plateau_;
  double rate_ = detail::unset_number;  // the rate that this hook set most recently; NaN if it has set none
  // Not saved: the rate before the first reduction in this process, and the rate that the model had after the last one.
  std::optional<double> unreduced_;
  std::optional<double> applied_;
};

}  // namespace stepwell
