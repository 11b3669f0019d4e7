// SPDX-License-Identifier: Apache-2.0
//
// The entry point of the library: `monitored_training_session`, which makes a session with everything that training needs, and its options.
// @see contract CREATE
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
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

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
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

/// A summary op over a `Model`, of any type: a member of `training_options::summaries`.
template<class Model>
class model_summary {
public:
  using result_type = model_result<Model>;

  /// Converts `summary::scalar("loss", &result::loss)`, `summary::histogram(...)`, and the other summary ops. Their projections are those of
  /// a fetch: members of the result or of the model, or callables that take the result, the model, or both.
  template<class Op>
    requires(!std::same_as<Op, model_summary>) && summary::summary_op<Op> &&
            detail::fetchable_from<decltype(Op::projection), result_type, Model>
  explicit(false) model_summary(Op op)
      : write_([op = std::move(op)](summary::writer* out, const result_type& result, const Model& model, std::int64_t step) {
          const auto& value = read(op.projection, result, model);
          if (!detail::is_present(value)) { return false; }
          if (out != nullptr) { op.write(*out, detail::present(value), step); }
          return true;
        }) {}

  /// Writes the value of a run. Writes nothing if the value is an empty `std::optional`.
  void write(summary::writer& out, const result_type& result, const Model& model, std::int64_t step) const {
    write_(&out, result, model, step);
  }
  /// Returns false if the value of a run is an empty `std::optional`.
  [[nodiscard]] bool has_value(const result_type& result, const Model& model) const { return write_(nullptr, result, model, 0); }

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

  std::function<bool(summary::writer*, const result_type&, const Model&, std::int64_t)> write_;
};

/// Options of a training session. Every option has a default. Each period has three states: default, off (`none`, 0), or a value.
///
/// Memory in addition to the variables, as a number of copies of the variables; `metrics().snapshot_bytes` reports the bytes held:
/// | options                                            | copies |
/// |----------------------------------------------------|--------|
/// | no `checkpoint_dir`                                | 1 for recovery, 0 with `keep_initial_state = false` or `retry.max_attempts = 0` |
/// | `checkpoint_dir`, periods between checkpoints off  | as above if there is no checkpoint at the start, else 0 |
/// | `checkpoint_dir`                                   | 1 while a checkpoint is written, else 0; at most `saver.max_staged` |
///
/// The memory of a copy is kept between checkpoints that are less than a minute apart.
template<class Model>
struct training_options {
  /// The name of the session. Its log messages begin with "[NAME] ", and progress bars display it. May be empty.
  std::string name = {};
  /// The master, through which several sessions train one model. If empty, the session has no master. "local:NAME": this session and the
  /// other sessions of this process that use the same name train one model.
  std::string master = {};
  /// True: this session is the chief, which restores, initialises, saves, and measures steps per second. False: it is a worker, which waits
  /// for the chief and does none of these.
  /// @see contract CREATE-7
  bool is_chief = true;
  /// Scaffold with the functions that initialise the model. If null, a new scaffold with its defaults is used.
  std::shared_ptr<stepwell::scaffold<Model>> scaffold = nullptr;
  /// Directory from which checkpoints are restored and in which they are saved. If empty, nothing is restored or saved. A restore needs no
  /// memory for a copy of the variables. Only strings and variables on a device are copied through temporary memory, one at a time.
  std::string checkpoint_dir = {};
  /// Periods between checkpoints. If neither of them nor `save_checkpoint_overhead` is set, the period is 600 s. If both are above zero,
  /// the seconds are used, and a warning is logged. If a checkpoint becomes due while another one is written, it is postponed until the
  /// other one is written (see `when_busy`).
  /// @see decision D-8
  setting<seconds_value> save_checkpoint_secs = {};
  setting<std::int64_t> save_checkpoint_steps = {};
  /// Share of the training time that saving may cost, for example 0.02. It replaces a period: the session measures the cost of saves and
  /// chooses the interval within the bounds `save_checkpoint_interval`; see `checkpoint_saver_options::save_overhead`.
  setting<double> save_checkpoint_overhead = {};
  interval_bounds save_checkpoint_interval = {};
  /// Periods between summaries. If neither is set, the period is 100 steps.
  setting<std::int64_t> save_summaries_steps = {};
  setting<seconds_value> save_summaries_secs = {};
  /// Number of steps between two measurements of steps per second. Each measurement is logged and written as a summary. Without a directory
  /// for event files, nothing is measured. Default: 100.
  setting<std::int64_t> log_step_count_steps = {};
  /// Minimum time between two log lines of the same kind: of steps per second, and of durable checkpoints. 0: all are logged.
  seconds_value log_every_secs = 10;
  /// Directory of event files. If empty, `checkpoint_dir` is used.
  std::string summary_dir = {};
  /// Number of newest checkpoints to keep. The default is 5. If off, all checkpoints are kept.
  setting<int> max_to_keep = {};
  /// Function that writes each summary: `[](summary::writer& out, const result& r, const model& m, std::int64_t step)`.
  std::function<void(summary::writer&, const model_result<Model>&, const Model&, std::int64_t)> summary = nullptr;
  /// Values that are written in each period of summaries: `{summary::scalar("loss", &result::loss), summary::histogram("w", &model::w)}`.
  /// They need a directory for event files.
  std::vector<model_summary<Model>> summaries = {};
  /// Metric writers that also receive every scalar of the event files:
  /// `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`. They need a directory for event files.
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  /// Hyper-parameters of this run, for TensorBoard's HParams dashboard. Written to the event file at the start.
  std::optional<format::hparam_map> hparams = std::nullopt;
  /// Listeners that are notified of each checkpoint.
  std::vector<std::shared_ptr<checkpoint_saver_listener>> checkpoint_listeners = {};
  /// All other options for saving: retention, shards, and the policies for a slow disk and for failures. `max_staged` limits the number of
  /// copies of the variables that saving makes. If the scaffold has saver options, the options of the scaffold are used instead. If the
  /// option `max_to_keep` above is set, its value replaces `saver.max_to_keep`.
  saver_options saver = {};
  /// Numbers of threads for the model, and the pool of threads for I/O.
  session_config config = {};
  /// Time that a worker waits for its chief before it throws `deadline_exceeded_error`.
  seconds_value max_wait_secs = 7200;
  /// Interval between two checks of a worker that waits for its chief and cannot be notified.
  /// @see decision D-3
  seconds_value recovery_wait = 1;
  /// Policy for recovery from `aborted_error` and `unavailable_error`.
  /// @see decision D-2
  retry_policy retry = {};
  /// If true, one copy of the variables is kept for recovery until there is a checkpoint. It holds the state at construction and, if the
  /// first save fails, the state of that save. If a checkpoint was restored, no copy is kept.
  bool keep_initial_state = true;
  /// Policy for a source that cannot seek back after a recovery has restored an earlier state.
  unseekable_policy on_unseekable = unseekable_policy::fail;
  /// Policy for a source whose dataset or seed differs from those of the checkpoint.
  other_data_policy on_other_data = other_data_policy::warn;
  /// Queue runners that are started, stopped and joined with the session.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// Maximum time for which `close` waits for threads and I/O, including the last checkpoint. If the time is exceeded, `close` throws
  /// `deadline_exceeded_error`, and writing continues in the background (see `~saver`).
  seconds_value stop_grace_period_secs = 120;
  /// Stop token of the application. A stop requested for this token also stops the session.
  std::stop_token stop_token = {};
  /// Signals that request a stop, for example `{SIGINT, SIGTERM}`. The loop ends after the current step, and the state after this step is
  /// saved at once. `stop_reason` names the signal. A second signal ends the process at once. The signal handlers are installed while the
  /// session exists; when it is closed, the previous handlers are restored.
  std::vector<int> stop_on = {};
  /// Time after a signal of `stop_on` within which all data must be on disk. A save that would take longer, according to the measured speed
  /// of previous saves, is not begun. `close` does not wait longer than this time. The decision is written to the log, to `stop_reason` and
  /// to `metrics().preemption`; see `plan_preemption`. Set a slightly shorter time than the scheduler grants.
  setting<seconds_value> preemption_grace = {};
  /// If true, the session checks the promise of the model's `update_fence`: before `step` calls `wait`, only variables marked with
  /// `variable_ref::early()` change. If empty, the promise is checked if the library was built without NDEBUG.
  std::optional<bool> check_update_fence = std::nullopt;
  /// Clock of the session. If null, the clock of the machine is used.
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

struct defer_start_t;
class deferred_start;

namespace detail {

/// True for the types of the first argument that selects an asynchronous session; see async_training_session.hpp.
template<class T>
inline constexpr bool says_how_to_start = std::is_same_v<T, defer_start_t> || std::is_same_v<T, deferred_start>;

/// A fetch of both the result and the model of a run. Empty if there are only `summaries`, and none of them has a value. This is not a
/// lambda, because g++ 12 gives the type of a lambda no linkage here.
template<class Model>
struct whole_run {
  using value_type = std::pair<const model_result<Model>*, const Model*>;

  std::shared_ptr<const std::vector<model_summary<Model>>> summaries;  // null if a run is never empty

  std::optional<value_type> operator()(const model_result<Model>& result, const Model& model) const {
    const auto has_value = [&](const auto& one) { return one.has_value(result, model); };
    if (summaries && std::none_of(summaries->begin(), summaries->end(), has_value)) { return std::nullopt; }
    return value_type(&result, &model);
  }
};

/// The summary op that calls the `summary` option, and writes the `summaries`.
template<class Model>
struct summary_option_op {
  decltype(training_options<Model>::summary) write_all;
  std::shared_ptr<const std::vector<model_summary<Model>>> summaries;
  whole_run<Model> projection = {};

  void write(summary::writer& out, const auto& run, std::int64_t step) const {
    if (write_all) { write_all(out, *run.first, *run.second, step); }
    if (!summaries) { return; }
    for (const auto& one : *summaries) { one.write(out, *run.first, *run.second, step); }
  }
};

template<class Model>
using default_summary_hook = summary_saver_hook<summary_option_op<Model>>;

/// Throws the `invalid_argument_error` for an option that is given together with the member of the scaffold with the same purpose.
[[noreturn]] void throw_both_given(std::string_view option, std::string_view of_scaffold);
/// Checks options that no other object checks.
/// @errors `invalid_argument_error` naming an invalid value or combination.
void check_roles(const session_target& target, seconds_value max_wait, seconds_value recovery_wait);
void check_not_negative(const setting<std::int64_t>& log_step_count_steps, const setting<int>& max_to_keep,
                        seconds_value stop_grace_period_secs, const setting<seconds_value>& preemption_grace);
/// Returns the directory of the event files. Empty if there are no event files.
/// @errors `invalid_argument_error` if there is no directory although the option `metrics` or `summaries` is used.
[[nodiscard]] const std::string& event_directory(const std::string& summary_dir, const std::string& checkpoint_dir, bool has_metrics,
                                                 bool has_summaries);

// The functions below are not inlined: copies and checks of options compile slowly in the programs of users.

/// Returns a copy of the option `hparams`.
[[nodiscard]] std::optional<format::hparam_map> copied(const std::optional<format::hparam_map>& option);
[[nodiscard]] std::vector<std::shared_ptr<checkpoint_saver_listener>> copied(
    const std::vector<std::shared_ptr<checkpoint_saver_listener>>& option);
[[nodiscard]] saver_options copied(const saver_options& option);
/// Returns the saver options `given`, completed by other options of the session.
/// @errors Those of `check_saver_options`.
[[nodiscard]] saver_options completed_saver_options(const saver_options& given, const setting<int>& max_to_keep,
                                                    const std::shared_ptr<clock>& time, const std::shared_ptr<io::pool>& pool);
/// Returns the options of event files. They use the same file system and threads as checkpoints.
[[nodiscard]] summary::writer_options event_options(const saver_options& of_checkpoints, const std::shared_ptr<clock>& time,
                                                    const std::vector<std::shared_ptr<summary::metric_writer>>& metrics);
/// Returns a function that returns the shared writer of `directory`. Empty if the directory is empty.
[[nodiscard]] std::function<std::shared_ptr<summary::writer>()> event_writer_of(const std::string& directory, summary::writer_options how);
/// Returns settings with a `find_checkpoint` for `directory`. If `saver` is on, `find_checkpoint` uses `saver`, which then does not delete
/// the restored checkpoint.
[[nodiscard]] session_settings settings_for(const checkpoint_saver_hook& saver, const std::string& directory, const saver_options& how,
                                            const std::vector<std::shared_ptr<queue_runner>>& runners, const std::vector<int>& stop_on);

// Return the default hooks, with the default periods if no period is given. A hook without a directory or a period does nothing.
[[nodiscard]] checkpoint_saver_hook default_saver_hook(checkpoint_saver_options made, bool is_deferred);
[[nodiscard]] step_counter_hook default_counter_hook(step_counter_options made);
/// Returns the part of the summary hook that is independent of its ops, or null if the hook is off.
[[nodiscard]] std::shared_ptr<summary_work> default_summary_work(summary_saver_options made);

/// The default hooks and the settings of a session, made from its options. A worker has no default hooks.
/// @lifetime Refers to the options.
template<class Model>
class session_defaults {
public:
  /// @errors `invalid_argument_error` if an option is invalid, even if it is not used; the message names the option.
  explicit session_defaults(const training_options<Model>& options)
      : options_(options),
        saver_(detail::completed_saver_options(options.scaffold && options.scaffold->saver() ? *options.scaffold->saver() : options.saver,
                                               options.max_to_keep, options.clock, options.config.io)) {
    detail::check_roles({options.master, options.is_chief, options.config}, options.max_wait_secs, options.recovery_wait);
    detail::check_not_negative(options.log_step_count_steps, options.max_to_keep, options.stop_grace_period_secs, options.preemption_grace);
    if (options.is_chief) {
      checkpoint_dir_ = options.checkpoint_dir;
      bool has_summaries = false;
      if constexpr (requires { options.summaries; }) { has_summaries = !options.summaries.empty(); }  // a graph has none
      event_dir_ = detail::event_directory(options.summary_dir, options.checkpoint_dir, !options.metrics.empty(), has_summaries);
    }
  }

  [[nodiscard]] step_counter_hook counter() const {
    return detail::default_counter_hook({.every_n_steps = options_.log_step_count_steps,
                                         .output_dir = event_dir_,
                                         .events = events(),
                                         .log_every_secs = options_.log_every_secs});
  }

  [[nodiscard]] std::shared_ptr<detail::summary_work> summary_work() const {
    return detail::default_summary_work({.output_dir = event_dir_,
                                         .events = events(),
                                         .save_steps = options_.save_summaries_steps,
                                         .save_secs = options_.save_summaries_secs,
                                         .hparams = detail::copied(options_.hparams)});
  }
  [[nodiscard]] default_summary_hook<Model> summaries() const {
    summary_option_op<Model> op{.write_all = options_.summary, .summaries = nullptr};
    if (options_.scaffold && options_.scaffold->summary_op()) {
      if (options_.summary) { detail::throw_both_given("summary", "summary_op"); }
      op.write_all = options_.scaffold->summary_op();
    }
    if (!options_.summaries.empty()) {
      op.summaries = std::make_shared<const std::vector<model_summary<Model>>>(options_.summaries);
      if (!op.write_all) { op.projection.summaries = op.summaries; }
    }
    return default_summary_hook<Model>(summary_work(), std::move(op));
  }

  /// Returns the hook that saves checkpoints. If `is_deferred` is true, the hook locks the directory when the session begins, not at once.
  [[nodiscard]] checkpoint_saver_hook saver(bool is_deferred) const {
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
  std::string checkpoint_dir_;  // empty for a worker
  std::string event_dir_;
};

/// Returns the hooks as a flat tuple: `chief_only` is replaced by its hooks.
template<class... Hooks>
auto flattened_hooks([[maybe_unused]] bool is_chief, Hooks&&... hooks) {
  return std::tuple_cat(detail::flattened(std::move(hooks), is_chief)...);
}

/// Session creator for a chief or a worker, depending on the options.
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

/// Returns a blocking or asynchronous `Session`, made of `first...`, settings, creator and hooks.
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

/// Returns true if `Model` can be the model of a session. Otherwise fails to compile with an explanation.
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

/// The type of a session made by `monitored_training_session`.
template<class Model, class... Hooks>
using training_session_of = detail::session_of_hooks<monitored_session, Model, Hooks...>;

/// Returns a session that trains `model`. The session restores the newest complete checkpoint of `options.checkpoint_dir`, if there is one.
/// The options select its default hooks: step counter, summaries and checkpoints. The given `hooks` are added, and all hooks are sorted by
/// their phases. Hooks in `chief_only(...)` are called only if `is_chief` is true. A worker has no default hooks and waits for its chief.
///
/// @errors   `invalid_argument_error` for invalid options and names. `failed_precondition_error` if another process uses the directory; the
///           message names the process. `data_loss_error` if the directory contains checkpoints and all of them are damaged.
///           `not_found_error` or `invalid_argument_error` if the variables of the checkpoint and of the model differ; the message names
///           the differences.
/// @lifetime `model` must outlive the session.
/// @cost     Reads the checkpoint once, and verifies it while reading. Without a checkpoint to restore, copies the variables once for
///           recovery and, if the session saves, once for the first checkpoint; the first copy is freed before the second one is made.
/// @see      contract CREATE-7
template<class Model, class... Hooks>
  requires(!detail::says_how_to_start<std::remove_cvref_t<Model>>)
[[nodiscard]] auto monitored_training_session(Model&& model, training_options<std::remove_cvref_t<Model>> options = {}, Hooks... hooks) {
  if constexpr (detail::can_be_trained<Model>()) {
    return detail::make_training_session<monitored_session>(model, options, std::tuple<>(), std::move(hooks)...);
  }
}

}  // namespace stepwell
