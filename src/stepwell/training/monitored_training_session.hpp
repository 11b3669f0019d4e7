// SPDX-License-Identifier: Apache-2.0
//
// The entry point of the library: `monitored_training_session` and its options. The function makes a session that restores and saves
// checkpoints, writes summaries and measures steps per second.
// @see contract CREATE
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/checkpoint_saver_hook.hpp"
#include "stepwell/hooks/step_counter_hook.hpp"
#include "stepwell/hooks/summary_saver_hook.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/session_settings.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/threads/queue_runner.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// A summary op of any type for a session over a `Model`: an element of `training_options::summaries`.
template<class Model>
class model_summary {
public:
  using result_type = model_result<Model>;

  /// Converts `summary::scalar("loss", &result::loss)`, `summary::histogram(...)`, or another summary op. The projection of the op selects
  /// the value, like a fetch: it is a member of the result or of the model, or a callable that takes the result, the model, or both.
  template<class Op>
    requires(!std::same_as<Op, model_summary>) && summary::summary_op<Op> &&
            detail::fetchable_from<decltype(Op::projection), result_type, Model>
  explicit(false) model_summary(Op op)
      : write_([op = std::move(op)](summary::writer& out, const result_type& result, const Model& model, std::int64_t step,
                                    function_ref<void()> begin) {
          const auto& value = read(op.projection, result, model);
          if (!detail::is_present(value)) { return; }
          begin();
          op.write(out, detail::present(value), step);
        }) {}

  /// Evaluates the projection once and writes the value, after a call of `begin`. Writes nothing, and does not call `begin`, if the value is
  /// an empty `std::optional`.
  void write(summary::writer& out, const result_type& result, const Model& model, std::int64_t step, function_ref<void()> begin) const {
    write_(out, result, model, step, begin);
  }

private:
  template<class Projection>
  static decltype(auto) read(const Projection& projection, const result_type& result, const Model& model) {
    if constexpr (std::invocable<const Projection&, const result_type&>) {
      return std::invoke(projection, result);
    } else if constexpr (std::invocable<const Projection&, const Model&>) {
      return std::invoke(projection, model);
    } else {
      return std::invoke(projection, result, model);
    }
  }

  std::function<void(summary::writer&, const result_type&, const Model&, std::int64_t, function_ref<void()>)> write_;
};

/// Options of a training session. Every option has a default. Each period has three states: the default, off (`none` or 0), or a value.
///
/// In addition to the model, a session needs memory for copies of the variables. `metrics().snapshot_bytes` reports the bytes that it
/// holds. The table shows the number of copies in the session of a chief:
/// | options                                            | copies |
/// |----------------------------------------------------|--------|
/// | no `checkpoint_dir`                                | 1 for recovery; 0 with `keep_initial_state = false` or `retry.max_attempts = 0` |
/// | `checkpoint_dir`, periods between checkpoints off  | as in the first row if there is no checkpoint at the start, otherwise 0 |
/// | `checkpoint_dir`                                   | 1 for each checkpoint in progress, see `saver.max_staged_bytes`; otherwise 0 |
///
/// In the third row, the memory of a copy is freed only if no checkpoint begins within a minute.
template<class Model>
struct training_options {
  /// The name of the session. Its log messages begin with "[NAME] ", and progress bars display it. May be empty.
  std::string name = {};
  /// The master, with which several sessions train one model. If empty, the session has no master. If "local:NAME", this session and all
  /// other sessions of this process with the same master train one model.
  std::string master = {};
  /// True: this session is the chief, which restores, initialises and saves the model, writes summaries, and measures steps per second.
  /// False: this session is a worker, which waits for the chief and does none of these. A worker needs a `master`.
  /// @see contract CREATE-7
  bool is_chief = true;
  /// Scaffold with the functions that initialise the model. If null, a scaffold with the default functions is used.
  std::shared_ptr<stepwell::scaffold<Model>> scaffold = nullptr;
  /// Directory from which a chief restores checkpoints and in which it saves them. If empty, nothing is restored or saved. A restore needs
  /// no memory for a copy of the variables, with one exception: variables of strings and variables on a device are copied through temporary
  /// memory, one variable at a time.
  std::string checkpoint_dir = {};
  /// Periods between checkpoints, in seconds and in steps. If none of `save_checkpoint_secs`, `save_checkpoint_steps` and
  /// `save_checkpoint_overhead` is set, the period is 600 s. If both periods are above zero, the seconds are used, and a warning is logged.
  /// A period above zero needs a `checkpoint_dir`.
  /// If a checkpoint becomes due while other ones are being written, the state is copied, too, or the step waits until there is memory for
  /// its copy (default of `saver.when_busy`).
  /// @see decisions D-8, D-35
  setting<seconds_value> save_checkpoint_secs = {};
  setting<std::int64_t> save_checkpoint_steps = {};
  /// Share of the training time that saving may cost, for example 0.02. The session measures the cost of saves, and chooses the interval
  /// between them within the bounds `save_checkpoint_interval`; see `checkpoint_saver_options::save_overhead`. Cannot be combined with one
  /// of the two periods above.
  setting<double> save_checkpoint_overhead = {};
  interval_bounds save_checkpoint_interval = {};
  /// Periods between summaries, in steps and in seconds. If neither of them is set, the period is 100 steps. A period above zero needs a
  /// directory for event files.
  setting<std::int64_t> save_summaries_steps = {};
  setting<seconds_value> save_summaries_secs = {};
  /// Whether the close writes the summaries of the last step, if they were not due after it. Each run then copies the result of the step; see
  /// `summary_saver_options::at_end`. Needs a directory for event files.
  bool save_summaries_at_end = false;
  /// Number of steps between two measurements of steps per second. Default: 100. Each measured rate is written to the event file and,
  /// within the limit of `log_every_secs`, logged. Needs a directory for event files; by default, nothing is measured without one.
  setting<std::int64_t> log_step_count_steps = {};
  /// Minimum time between two log lines about steps per second, and between two log lines about durable checkpoints. 0: no minimum.
  seconds_value log_every_secs = 10;
  /// Directory of event files. If empty, `checkpoint_dir` is used. If that is empty, too, there are no event files.
  std::string summary_dir = {};
  /// Number of newest checkpoints to keep. Default: that of `saver.max_to_keep`, which is 5. Off: all checkpoints are kept.
  setting<int> max_to_keep = {};
  /// Function that writes the summaries of a step. It is called in each period of summaries: `[](summary::writer& out, const result& r,
  /// const model& m, std::int64_t step)`. It needs a directory for event files.
  std::function<void(summary::writer&, const model_result<Model>&, const Model&, std::int64_t)> summary = nullptr;
  /// Values that are written in each period of summaries: `{summary::scalar("loss", &result::loss), summary::histogram("w", &model::w)}`.
  /// They need a directory for event files.
  std::vector<model_summary<Model>> summaries = {};
  /// Metric writers. They receive every scalar that is written to the event file:
  /// `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`. They need a directory for event files.
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  /// Hyper-parameters of this run, for TensorBoard's HParams dashboard. They are written to the event file at the start, unless summaries
  /// are off. They need a directory for event files.
  std::optional<format::hparam_map> hparams = std::nullopt;
  /// Listeners that are notified before and after each save of a checkpoint. They need a `checkpoint_dir`.
  std::vector<std::shared_ptr<checkpoint_saver_listener>> checkpoint_listeners = {};
  /// All other options for saving: retention, shards, and the policies for a slow disk and for failures. `max_staged_bytes` limits the
  /// memory for copies of the variables. If `scaffold` has saver options, they are used, and `saver` is ignored. If the option
  /// `max_to_keep` above is set, its value replaces the `max_to_keep` of the saver options.
  saver_options saver = {};
  /// Numbers of threads for the model, and the pool of threads for I/O. A session over a model does not use the numbers; the model can read
  /// them with `model_session::config`.
  session_config config = {};
  /// Time that a worker waits for its chief before it throws `deadline_exceeded_error`.
  seconds_value max_wait_secs = 7200;
  /// Interval at which a waiting worker checks whether its chief has made the model ready, if the worker cannot be notified.
  /// @see decision D-3
  seconds_value recovery_wait = 1;
  /// Policy for recoveries: the number of attempts, and the waits before them. The session recovers from `aborted_error` and
  /// `unavailable_error`.
  /// @see decision D-2
  retry_policy retry = {};
  /// If true, and if no checkpoint was restored, one copy of the variables is kept for recovery until a checkpoint is saved. First the copy
  /// holds the state at the start. If the first save fails, the copy holds the state of that save.
  bool keep_initial_state = true;
  /// Policy for a source that cannot seek back after a recovery has restored an earlier state.
  unseekable_policy on_unseekable = unseekable_policy::fail;
  /// Policy for a source whose dataset or seed is not the same as when the restored checkpoint was saved.
  other_data_policy on_other_data = other_data_policy::warn;
  /// Queue runners that are started, stopped and joined with the session.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// Maximum time for which `close`, or a recovery, waits for threads and I/O. The time includes the last checkpoint of `close`. If the
  /// time is exceeded, `close` throws `deadline_exceeded_error`, and writing continues in the background (see `saver::close`).
  seconds_value stop_grace_period_secs = 120;
  /// Stop token of the application. When a stop is requested for this token, the session stops, too.
  std::stop_token stop_token = {};
  /// Signals that request a stop, for example `{SIGINT, SIGTERM}`. The loop ends after the current step. If the session saves checkpoints,
  /// it saves the state after this step at once. `stop_reason` names the signal. A second signal of the list has its default effect: it
  /// ends the process at once. The signal handlers are installed when the session is constructed. When it is closed or destroyed, the
  /// previous handlers are restored.
  std::vector<int> stop_on = {};
  /// Time after a signal of `stop_on` within which all data must be on disk, because the process will then be killed. Requires `stop_on`.
  /// If the measured speed of previous saves shows that a save would take longer, the save is not begun. `close` does not wait longer than
  /// this time. The log, `stop_reason` and `metrics().preemption` report whether the state is saved; see `plan_preemption`. Set a slightly
  /// shorter time than the scheduler grants.
  setting<seconds_value> preemption_grace = {};
  /// If true, the session checks that a model whose `step` takes an `update_fence` follows the rule of the fence: before `step` has called
  /// `update_fence::wait`, only variables that are marked with `variable_ref::early()` may change. If empty, the session checks the rule
  /// at the first checkpoint that it copies during a step, and at each 16th one after it.
  std::optional<bool> check_update_fence = std::nullopt;
  /// Clock of the session. If null, the clock of the machine is used.
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

struct defer_start_t;
class deferred_start;

namespace detail {

/// True if `T` is a type that selects an asynchronous session as the first argument of `monitored_training_session`; see
/// async_training_session.hpp.
template<class T>
inline constexpr bool says_how_to_start = std::is_same_v<T, defer_start_t> || std::is_same_v<T, deferred_start>;

/// A fetch that returns pointers to the result and to the model of a run. This is not a lambda, because g++ 12 gives the type of a lambda no
/// linkage here.
template<class Model>
struct whole_run {
  std::pair<const model_result<Model>*, const Model*> operator()(const model_result<Model>& result, const Model& model) const {
    return {&result, &model};
  }
};

/// The summary op of the default summary hook. It calls the function of the option `summary`, and writes the values of `summaries`.
template<class Model>
struct summary_option_op {
  decltype(training_options<Model>::summary) write_all;
  std::vector<model_summary<Model>> summaries;
  whole_run<Model> projection = {};

  void write(summary::writer& out, const auto& run, std::int64_t step, const auto& begin) const {
    if (write_all || summaries.empty()) { begin(); }
    if (write_all) { write_all(out, *run.first, *run.second, step); }
    for (const auto& one : summaries) { one.write(out, *run.first, *run.second, step, begin); }
  }
};

template<class Model>
using default_summary_hook = summary_saver_hook<summary_option_op<Model>>;

/// Throws `invalid_argument_error`: `option` and the member `of_scaffold` of the scaffold, which have the same purpose, are both given.
[[noreturn]] void throw_both_given(std::string_view option, std::string_view of_scaffold);
/// Check those options that are checked nowhere else.
/// @errors `invalid_argument_error` naming an invalid value or combination.
void check_roles(const session_target& target, seconds_value max_wait, seconds_value recovery_wait);
void check_not_negative(const setting<std::int64_t>& log_step_count_steps, seconds_value log_every_secs, const setting<int>& max_to_keep,
                        seconds_value stop_grace_period_secs, const setting<seconds_value>& preemption_grace);
/// The name of an option that has no effect without a directory, and whether the option is given.
using directory_user = std::pair<std::string_view, bool>;
/// Checks that a chief has the directories that its options need. `of_checkpoints` need `checkpoint_dir`. `of_events` need `summary_dir` or
/// `checkpoint_dir`.
/// @errors `invalid_argument_error` that names the first option without its directory.
void check_directories(const std::string& checkpoint_dir, const std::string& summary_dir,
                       std::initializer_list<directory_user> of_checkpoints, std::initializer_list<directory_user> of_events);

// The functions below are defined in the library and not in this header. Otherwise, they would slow down the compilation of user programs.

/// Returns the absolute path of a directory. Returns an empty string unchanged.
[[nodiscard]] std::string absolute(const std::string& directory);
/// Return a copy of an option.
[[nodiscard]] std::optional<format::hparam_map> copied(const std::optional<format::hparam_map>& option);
[[nodiscard]] std::vector<std::shared_ptr<checkpoint_saver_listener>> copied(
    const std::vector<std::shared_ptr<checkpoint_saver_listener>>& option);
[[nodiscard]] saver_options copied(const saver_options& option);
/// Returns the saver options `given`, with `max_to_keep` replaced if that option of the session is set, and with the clock and the I/O pool
/// of the session if `given` has none.
/// @errors Those of `check_saver_options`.
[[nodiscard]] saver_options completed_saver_options(const saver_options& given, const setting<int>& max_to_keep,
                                                    const std::shared_ptr<clock>& time, const std::shared_ptr<io::pool>& pool);
/// Returns the options of the writer of event files. The writer uses the same file system and threads as the saver of checkpoints.
[[nodiscard]] summary::writer_options event_options(const saver_options& of_checkpoints, const std::shared_ptr<clock>& time,
                                                    const std::vector<std::shared_ptr<summary::metric_writer>>& metrics);
/// Returns a function that returns the shared writer of event files in `directory`. Returns an empty function if `directory` is empty.
[[nodiscard]] std::function<std::shared_ptr<summary::writer>()> event_writer_of(const std::string& directory, summary::writer_options how);
/// Returns session settings whose `find_checkpoint` finds the checkpoints in `directory`. If the hook `saver` is on, `find_checkpoint` uses
/// its saver, so that this saver does not delete the restored checkpoint.
[[nodiscard]] session_settings settings_for(const checkpoint_saver_hook& saver, const std::string& directory, const saver_options& how,
                                            const std::vector<std::shared_ptr<queue_runner>>& runners, const std::vector<int>& stop_on);

// Return a default hook, with the default period if no period is given. Without a directory, or if the period is off, the hook does
// nothing.
[[nodiscard]] checkpoint_saver_hook default_saver_hook(checkpoint_saver_options made, bool is_deferred);
[[nodiscard]] step_counter_hook default_counter_hook(step_counter_options made);
/// Returns the part of the default summary hook that is independent of its summary op. Returns null if the hook is off.
[[nodiscard]] std::shared_ptr<summary_work> default_summary_work(summary_saver_options made);

/// Makes the default hooks and the settings of a session from its options. The default hooks of a worker are off.
/// @lifetime The options must outlive this object.
template<class Model>
class session_defaults {
public:
  /// @errors `invalid_argument_error` if one of the options that are checked here is invalid, even if it is not used. The message names the
  /// option.
  explicit session_defaults(const training_options<Model>& options)
      : options_(options),
        saver_(detail::completed_saver_options(options.scaffold && options.scaffold->saver() ? *options.scaffold->saver() : options.saver,
                                               options.max_to_keep, options.clock, options.config.io)) {
    detail::check_roles({options.master, options.is_chief, options.config}, options.max_wait_secs, options.recovery_wait);
    detail::check_not_negative(options.log_step_count_steps, options.log_every_secs, options.max_to_keep, options.stop_grace_period_secs,
                               options.preemption_grace);
    if (options.is_chief) {
      checkpoint_dir_ = detail::absolute(options.checkpoint_dir);
      event_dir_ = detail::absolute(options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir);
      bool has_summaries = false;
      bool has_summary = false;
      bool at_end = false;
      if constexpr (requires { options.summaries; }) {  // a graph has neither
        has_summaries = !options.summaries.empty();
        has_summary = options.summary != nullptr;
        at_end = options.save_summaries_at_end;
      }
      detail::check_directories(options.checkpoint_dir, options.summary_dir,
                                {{"save_checkpoint_secs", options.save_checkpoint_secs.enabled().has_value()},
                                 {"save_checkpoint_steps", options.save_checkpoint_steps.enabled().has_value()},
                                 {"save_checkpoint_overhead", options.save_checkpoint_overhead.enabled().has_value()},
                                 {"checkpoint_listeners", !options.checkpoint_listeners.empty()},
                                 {"max_to_keep", options.max_to_keep.enabled().has_value()}},
                                {{"summaries", has_summaries},
                                 {"summary", has_summary},
                                 {"metrics", !options.metrics.empty()},
                                 {"hparams", options.hparams.has_value()},
                                 {"save_summaries_steps", options.save_summaries_steps.enabled().has_value()},
                                 {"save_summaries_secs", options.save_summaries_secs.enabled().has_value()},
                                 {"save_summaries_at_end", at_end},
                                 {"log_step_count_steps", options.log_step_count_steps.enabled().has_value()}});
    }
  }

  [[nodiscard]] step_counter_hook counter() const {
    return detail::default_counter_hook({.every_n_steps = options_.log_step_count_steps,
                                         .output_dir = event_dir_,
                                         .events = events(),
                                         .log_every_secs = options_.log_every_secs});
  }

  [[nodiscard]] std::shared_ptr<detail::summary_work> summary_work() const {
    const log_scope named(options_.name);
    bool at_end = false;
    if constexpr (requires { options_.save_summaries_at_end; }) { at_end = options_.save_summaries_at_end; }  // a graph has no such option
    return detail::default_summary_work({.output_dir = event_dir_,
                                         .events = events(),
                                         .save_steps = options_.save_summaries_steps,
                                         .save_secs = options_.save_summaries_secs,
                                         .at_end = at_end,
                                         .hparams = detail::copied(options_.hparams)});
  }
  [[nodiscard]] default_summary_hook<Model> summaries() const {
    summary_option_op<Model> op{.write_all = options_.summary, .summaries = options_.summaries};
    if (options_.scaffold && options_.scaffold->summary_op()) {
      if (options_.summary) { detail::throw_both_given("summary", "summary_op"); }
      op.write_all = options_.scaffold->summary_op();
    }
    return default_summary_hook<Model>(summary_work(), std::move(op));
  }

  /// Returns the hook that saves checkpoints. If `is_deferred` is true, the hook locks the directory in `begin`, otherwise in this call.
  [[nodiscard]] checkpoint_saver_hook saver(bool is_deferred) const {
    const log_scope named(options_.name);
    return detail::default_saver_hook({.checkpoint_dir = checkpoint_dir_,
                                       .save_secs = options_.save_checkpoint_secs,
                                       .save_steps = options_.save_checkpoint_steps,
                                       .save_overhead = options_.save_checkpoint_overhead,
                                       .save_interval = options_.save_checkpoint_interval,
                                       .saver = detail::copied(saver_),
                                       .listeners = detail::copied(options_.checkpoint_listeners),
                                       .summary_dir = event_dir_,
                                       .events = events(),
                                       .log_every_secs = options_.log_every_secs},
                                      is_deferred);
  }

  [[nodiscard]] session_settings settings(const checkpoint_saver_hook& saver) const {
    auto made = detail::settings_for(saver, checkpoint_dir_, saver_, options_.queue_runners, options_.stop_on);
    made.name = options_.name;
    made.event_directory = event_dir_;
    made.event_writer = detail::event_writer_of(event_dir_, events());
    made.stop_grace_period = detail::as_duration(options_.stop_grace_period_secs);
    made.retry = options_.retry;
    made.keep_initial_state = options_.keep_initial_state;
    made.on_unseekable = options_.on_unseekable;
    made.on_other_data = options_.on_other_data;
    made.stop_token = options_.stop_token;
    if (const auto grace = options_.preemption_grace.enabled()) { made.preemption_grace = detail::as_duration(*grace); }
    made.check_update_fence = options_.check_update_fence;
    made.clock = options_.clock ? options_.clock : system_clock();
    return made;
  }

private:
  [[nodiscard]] summary::writer_options events() const { return detail::event_options(saver_, options_.clock, options_.metrics); }

  const training_options<Model>& options_;
  saver_options saver_;         // those of the scaffold if it has any, otherwise those of the options
  std::string checkpoint_dir_;  // empty for a worker, like `event_dir_`
  std::string event_dir_;
};

/// Returns the hooks as a flat tuple: each `chief_only(...)` is replaced by the hooks that it contains.
template<class... Hooks>
auto flattened_hooks([[maybe_unused]] bool is_chief, Hooks&&... hooks) {
  return std::tuple_cat(detail::flattened(std::move(hooks), is_chief)...);
}

/// Creates the raw session of a chief or of a worker, depending on the options.
template<class Model>
class training_session_creator {
public:
  training_session_creator(Model& model, const training_options<Model>& options)
      : model_(&model), scaffold_(options.scaffold), max_wait_secs_(options.max_wait_secs),
        options_{.target = {options.master, options.is_chief, options.config},
                 .restore = {},
                 .keep_initial_state = options.keep_initial_state && options.retry.max_attempts > 0,
                 .recovery_wait = options.recovery_wait} {}

  [[nodiscard]] model_session<Model> create_session(session_creation& creation) {
    if (options_.target.is_chief) { return chief_session_creator<Model>(*model_, scaffold_, options_).create_session(creation); }
    return worker_session_creator<Model>(
               *model_, scaffold_, {.target = options_.target, .max_wait_secs = max_wait_secs_, .recovery_wait = options_.recovery_wait})
        .create_session(creation);
  }

private:
  Model* model_;
  std::shared_ptr<scaffold<Model>> scaffold_;
  seconds_value max_wait_secs_;
  chief_session_options options_;
};

template<template<class, class...> class Session, class Model, class... Hooks>
std::type_identity<Session<model_session<Model>, step_counter_hook, default_summary_hook<Model>, checkpoint_saver_hook, Hooks...>>
    session_with(std::type_identity<std::tuple<Hooks...>>);

template<class... Hooks>
auto held_of() {
  if constexpr ((is_flat<Hooks> && ...)) {
    return std::type_identity<std::tuple<Hooks...>>();
  } else {
    return std::type_identity<decltype(detail::flattened_hooks(true, std::declval<Hooks>()...))>();
  }
}

template<template<class, class...> class Session, class Model, class... Hooks>
using session_of_hooks = typename decltype(session_with<Session, Model>(held_of<Hooks...>()))::type;

/// Returns a blocking or asynchronous `Session`. The arguments of its constructor are `first...`, the settings, a creator and the hooks.
template<template<class, class...> class Session, class Model, class... Hooks, class... First>
auto make_training_session(Model& model, const training_options<Model>& options, [[maybe_unused]] std::tuple<First...> first,
                           Hooks... hooks) {
  const session_defaults<Model> defaults(options);
  auto counter = defaults.counter();
  auto summaries = defaults.summaries();
  auto saver = defaults.saver(sizeof...(First) > 0);  // an asynchronous session begins on a thread that may block
  auto settings = defaults.settings(saver);
  const auto make = [&](First... one, auto... flat) {
    return session_of_hooks<Session, Model, Hooks...>(std::move(one)..., std::move(settings),
                                                      training_session_creator<Model>(model, options), std::move(counter),
                                                      std::move(summaries), std::move(saver), std::move(flat)...);
  };
  if constexpr (sizeof...(First) == 0 && (is_flat<Hooks> && ...)) {  // avoids tuples, which compile slowly
    return make(std::move(hooks)...);
  } else {
    return std::apply(make, std::tuple_cat(std::move(first), detail::flattened_hooks(options.is_chief, std::move(hooks)...)));
  }
}

/// Returns true if `Model` can be the model of a session. Otherwise does not compile, and the message explains the reason.
template<class Model>
constexpr bool can_be_trained() {
  static_assert(std::is_lvalue_reference_v<Model>,
                "stepwell: the session refers to the model; an rvalue model would be destroyed before it");
  static_assert(!std::is_const_v<std::remove_reference_t<Model>>, "stepwell: a const model cannot be trained");
  static_assert(
      trainable_model<std::remove_cvref_t<Model>>,
      "stepwell: a model is a class with step(...) and variables(), which returns stepwell::variables({{\"name\", member}, ...}); if its "
      "step is a template or overloaded, it must name the type of its result: using result = ...");
  return std::is_lvalue_reference_v<Model> && !std::is_const_v<std::remove_reference_t<Model>> &&
         trainable_model<std::remove_cvref_t<Model>>;
}

}  // namespace detail

/// Returns a session that trains `model`. The session of a chief restores the newest complete checkpoint of `options.checkpoint_dir`, if
/// there is one. Depending on the options, it has default hooks, which count steps, write summaries and save checkpoints. A worker waits
/// for its chief, and has no default hooks. The given `hooks` are added, and all hooks are sorted by their phases (see `hook_phase`). Hooks
/// in `chief_only(...)` are called only if `is_chief` is true.
///
/// @errors   `invalid_argument_error` for invalid options, and for invalid names of variables and hooks. `failed_precondition_error` if
///           another session that saves checkpoints, in any process, uses the directory; the message names the process. `data_loss_error`
///           if the directory contains checkpoints and all of them are damaged. `not_found_error` or `invalid_argument_error` if the
///           variables of the checkpoint and of the model differ; the message lists the differences. `deadline_exceeded_error` if a worker
///           has waited for its chief for `max_wait_secs`.
/// @lifetime `model` must outlive the session.
/// @cost     Reads the checkpoint once, and verifies it while reading. If no checkpoint is restored, copies the variables once for recovery
///           (see `keep_initial_state`) and, if the session saves checkpoints, once for the first checkpoint. The first copy is freed
///           before the second one is made.
/// @see      contract CREATE-7
template<class Model, class... Hooks>
  requires(!detail::says_how_to_start<std::remove_cvref_t<Model>>)
[[nodiscard]] auto monitored_training_session(Model&& model, training_options<std::remove_cvref_t<Model>> options = {}, Hooks... hooks) {
  if constexpr (detail::can_be_trained<Model>()) {
    return detail::make_training_session<monitored_session>(model, options, std::tuple<>(), std::move(hooks)...);
  }
}

}  // namespace stepwell
