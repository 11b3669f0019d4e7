// SPDX-License-Identifier: Apache-2.0
//
// Periodic evaluation during training, with a period in steps, epochs or seconds. The evaluation runs either in the training loop, which
// then waits for it, or beside the training, on another thread.
//
//     auto tested = evaluate_every(epochs(1), test_batches, &network::score, measure("accuracy", metrics::mean(), &score::accuracy));
//     auto session = monitored_training_session(model, options, tested, early_stopping_hook{{...}, tested.value("accuracy")});
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/scheduled_hook.hpp"
#include "stepwell/metrics/metrics.hpp"
#include "stepwell/protocol/detail/evaluated_value.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_context.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// A number of epochs, as a period: `evaluate_every(epochs(1), ...)`.
struct epochs {
  explicit constexpr epochs(std::int64_t number) : count(number) {}
  std::int64_t count;
};

/// The period of an evaluation: a number of steps, `epochs`, or a time such as `30s`.
class evaluation_period {
public:
  template<std::integral Steps>
  explicit(false) constexpr evaluation_period(Steps steps) : steps_(static_cast<std::int64_t>(steps)) {}
  explicit(false) constexpr evaluation_period(stepwell::epochs period) : epochs_(period.count) {}
  template<class Rep, class Period>
  explicit(false) constexpr evaluation_period(std::chrono::duration<Rep, Period> time) : time_(seconds_value(time)) {}

  [[nodiscard]] constexpr const std::optional<std::int64_t>& steps() const noexcept { return steps_; }
  [[nodiscard]] constexpr const std::optional<std::int64_t>& epochs() const noexcept { return epochs_; }
  [[nodiscard]] constexpr const std::optional<seconds_value>& time() const noexcept { return time_; }

private:
  std::optional<std::int64_t> steps_;
  std::optional<std::int64_t> epochs_;
  std::optional<seconds_value> time_;
};

/// Options of `evaluate_every`, of which only `every` is required.
struct evaluate_every_options {
  /// The period. In steps: the model is evaluated after each run that reaches or passes a multiple of the number. In epochs: after the last
  /// batch of an epoch, if the number of complete epochs is a multiple. As a time: when a run ends, and at least this time has passed since
  /// the previous evaluation was due, or since the creation of the session. The speed of the machine then decides which steps are
  /// evaluated, so a resumed run may evaluate other steps than an uninterrupted one.
  evaluation_period every;
  std::string name = "evaluation";  ///< Name of the hook's state in checkpoints, and the beginning of the hook's tags in event files.
  bool log = true;                  ///< Whether to log the values.
  /// The minimum time between two log lines. The values of the last evaluation are logged at the close in any case. 0: each evaluation is
  /// logged.
  seconds_value log_every_secs = 10;
  bool summaries = true;  ///< Whether to write the values, as `name/METRIC`, to the event file of the session, if there is one.
};

/// One metric of an evaluation. `Metric` is a streaming metric: it is updated with each batch, see metrics.hpp. The evaluation hook resets
/// the metric at the beginning of each evaluation.
template<class Metric, class Projection>
struct measured {
  std::string name;
  Metric metric;
  Projection projection;
};

/// Returns a metric of an evaluation. For each batch, `metric.update(projection(result))` is called, where `result` is the result of the
/// evaluation function for this batch. If the projection returns a tuple or pair, its elements become the arguments of `update`. For
/// example, for a mean weighted by the size of the batch, the projection returns `std::pair(mean, size)`. The projection may also return a
/// `std::optional` of such a value. An empty optional does not update the metric. Alternatively, a projection may take the metric
/// and the result, and update the metric itself.
template<class Metric, class Projection>
  requires metrics::streaming_metric<Metric>
[[nodiscard]] measured<Metric, Projection> measure(std::string name, Metric metric, Projection projection) {
  return {std::move(name), std::move(metric), std::move(projection)};
}
/// Returns a metric that is the mean of `projection(result)` over all batches.
template<class Projection>
[[nodiscard]] measured<metrics::mean, Projection> measure(std::string name, Projection projection) {
  return {std::move(name), metrics::mean(), std::move(projection)};
}

namespace detail {

template<class T>
inline constexpr bool is_measured = false;
template<class Metric, class Projection>
inline constexpr bool is_measured<measured<Metric, Projection>> = true;

/// True if at least one type is given, and the last one is a `measured`.
template<class... Given>
inline constexpr bool ends_with_measure = false;
template<class Last>
inline constexpr bool ends_with_measure<Last> = is_measured<std::remove_cvref_t<Last>>;
template<class First, class... Others>
  requires(sizeof...(Others) > 0)
inline constexpr bool ends_with_measure<First, Others...> = ends_with_measure<Others...>;

template<class T>
concept tuple_like = requires { std::tuple_size<T>::value; };

/// Returns the argument of `Metric::update` for `value`. If `update` accepts a double, a value of an arithmetic type is converted to a
/// double. Another number, an enumerator, or a tensor with one element is converted only if `update` does not accept its type. Returns all
/// other values unchanged.
template<class Metric, class T>
decltype(auto) metric_argument(const T& value) {
  constexpr bool takes_double = requires(Metric& metric) { metric.update(double{}); };
  constexpr bool takes_value = requires(Metric& metric) { metric.update(value); };
  constexpr bool is_number = number_like<T> || std::is_enum_v<T> || adapted_tensor<T> || lazy_tensor<T>;
  if constexpr (takes_double && is_number && (std::is_arithmetic_v<T> || !takes_value)) {
    return detail::to_number(value);
  } else {
    return (value);
  }
}

/// Adds the value of one result to a metric.
template<class Metric, class Projection, class Result>
void update_metric(measured<Metric, Projection>& to, const Result& result) {
  if constexpr (std::invocable<const Projection&, Metric&, const Result&>) {
    std::invoke(to.projection, to.metric, result);
  } else {
    static_assert(std::invocable<const Projection&, const Result&>,
                  "stepwell: the projection of a metric takes the result of the evaluation function, or the metric and the result");
    const auto add = [&to](const auto&... values) { to.metric.update(detail::metric_argument<Metric>(values)...); };
    const auto& value = std::invoke(to.projection, result);
    if (!is_present(value)) { return; }
    if constexpr (tuple_like<std::remove_cvref_t<decltype(present(value))>>) {
      std::apply(add, present(value));
    } else {
      add(present(value));
    }
  }
}

/// Stands for the data in an evaluation without data: the evaluation function is called once, with the model only.
struct no_batches {
  template<class Action, class Stops>
  static std::int64_t for_each(Action&& action, const Stops& stops) {
    if (stops()) { return 0; }
    action();
    return 1;
  }
};

/// The data of an evaluation. There are three kinds: a function that returns a source, called for each evaluation; a seekable source, which
/// is rewound for each evaluation; or a range.
template<class Given>  // an lvalue reference, or the type that is owned
class evaluation_batches {
  using given = std::remove_reference_t<Given>;

public:
  explicit evaluation_batches(Given&& source) : source_(std::forward<Given>(source)) {
    if constexpr (data::seekable_source<given>) { begin_ = source_.position(); }
  }

  /// Calls `action` with each batch, until `stops()`, called before each batch, returns true. Returns the number of batches.
  template<class Action, class Stops>
  std::int64_t for_each(Action&& action, const Stops& stops) {
    if constexpr (data::seekable_source<given>) {
      source_.seek(begin_);
      return each_of(source_, action, stops);
    } else if constexpr (std::invocable<given&>) {
      auto&& batches = std::invoke(source_);
      return each_of(batches, action, stops);
    } else {
      static_assert(std::ranges::input_range<given&>,
                    "stepwell: the data of an evaluation is a range of batches, a seekable source, or a function that returns a source; "
                    "another source could be read only once");
      auto batches = data::source(source_);
      return each_of(batches, action, stops);
    }
  }

private:
  static std::int64_t each_of(auto& source, auto& action, const auto& stops) {
    std::int64_t count = 0;
    for (auto* batch = source.peek(); batch != nullptr && !stops(); batch = source.peek()) {
      action(std::as_const(*batch));
      ++count;
      source.advance();
    }
    return count;
  }

  Given source_;
  std::uint64_t begin_ = 0;
};

/// The part of an evaluation hook that does not depend on the types of model and data. It decides when an evaluation is due, and puts the
/// values into effect: from then on, hooks that watch the values can read them.
class evaluations {
public:
  /// A move is a copy, so that `value` can be called after `std::move`.
  evaluations(const evaluations&) = default;
  evaluations& operator=(const evaluations&) = default;
  ~evaluations() = default;

  /// Returns the metric `name`, for hooks that watch this metric.
  /// @errors `invalid_argument_error` if there is no such metric; the message lists the metrics.
  [[nodiscard]] evaluated_value value(std::string_view name) const;
  /// Returns the metrics of all evaluations that have taken effect, as the result of `run_all` has them. Call this function between steps.
  [[nodiscard]] std::vector<history_value> history() const;

  void begin() noexcept;
  /// Returns the state of the hook. If an evaluation beside the training is running, blocks until this evaluation has ended.
  /// @errors The failure of that evaluation, unless it was thrown before.
  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& state_name() const noexcept;

  /// The values of the metrics in one evaluation, and the number of batches.
  struct outcome {
    std::vector<double> values;
    std::int64_t batches = 0;
  };
  class state;

protected:
  explicit evaluations(std::shared_ptr<state> made);

  /// Returns true if an evaluation is due after the run that reached `step`. Begins the next period in this case.
  [[nodiscard]] bool take_due(const session_requests& session, std::int64_t step);
  void finish() noexcept;
  /// Returns the state as `Work`, the type that the derived class has created.
  template<class Work>
  [[nodiscard]] Work& of() const noexcept {
    return static_cast<Work&>(*state_);
  }

private:
  std::shared_ptr<state> state_;  // shared by copies of the hook, and with `evaluated_value`
};

/// Evaluations in the training loop.
class loop_evaluations : public evaluations {
protected:
  using evaluate_function = function_ref<outcome(function_ref<bool()> stops)>;

  loop_evaluations(evaluate_every_options options, std::vector<std::string> names);

  /// Begins or continues with a session at `step`. Returns true if the state must be evaluated at once, because the process that saved this
  /// state ended before the evaluation was complete.
  [[nodiscard]] bool start(const session_requests& session, std::int64_t step);
  /// Calls `evaluate(stops)` to evaluate the current state. The values take effect when `evaluate` has returned. If the process is about to
  /// end and no time is left, `stops()` returns true, and the evaluation has no values. A session that resumes from the current state then
  /// evaluates this state again.
  void evaluate(const session_requests& session, std::int64_t step, evaluate_function evaluate);
};

/// Evaluations of snapshots on another thread.
class beside_evaluations : public evaluations {
public:
  using evaluate_function = std::function<outcome(const snapshot&, const std::stop_token&)>;

protected:
  beside_evaluations(evaluate_every_options options, std::vector<std::string> names, evaluate_function evaluate);

  /// Checks that `other`, the argument of `beside`, is not the model that the session trains.
  /// @errors `invalid_argument_error` if it is.
  static void check_is_other(const void* other, const void* trained);
  /// Begins or continues with a session at `step`.
  void start(const session_requests& session, std::int64_t step);
  /// Waits for the previous evaluation, and puts its values into effect. Then requests an evaluation of the current state.
  void evaluate(const session_requests& session, std::int64_t step);
  /// Waits for the evaluation, and logs and writes its values.
  void finish();

private:
  class work;
};

/// The data of an evaluation, the function that evaluates, and the metrics.
template<class Batches, class Evaluate, class... Measures>
class evaluation_parts {
public:
  evaluation_parts(Batches data, Evaluate function, Measures... given)
      : batches_(std::move(data)), evaluate_(std::move(function)), measures_(std::move(given)...) {}

  /// Evaluates `model`, until `stops()` returns true between two batches.
  evaluations::outcome run(auto& model, const auto& stops) {
    std::apply([](auto&... measure) { (measure.metric.reset(), ...); }, measures_);
    const auto add = [&](const auto&... batch) {
      static_assert(std::invocable<Evaluate&, decltype(model), decltype(batch)...>,
                    "stepwell: the function of evaluate_every takes the model and a batch; without data, only the model");
      const auto& result = std::invoke(evaluate_, model, batch...);
      std::apply([&](auto&... measure) { (detail::update_metric(measure, result), ...); }, measures_);
    };
    const auto count = batches_.for_each(add, stops);
    return {std::apply([](const auto&... measure) { return std::vector<double>{measure.metric.value()...}; }, measures_), count};
  }

private:
  Batches batches_;
  Evaluate evaluate_;
  std::tuple<Measures...> measures_;
};

}  // namespace detail

/// The model into which an evaluation beside the training restores the state. See `beside`. Null: the evaluation is made in the loop.
template<class Model>
struct beside_model {
  Model* model = nullptr;
};

/// Makes `evaluate_every` evaluate beside the training: `evaluate_every(500, beside(copy), test_batches, &network::score, ...)`. `other` is
/// a second object of the type of the model. While the training continues, a thread restores a snapshot of the state into `other` and
/// evaluates `other`. Hooks that watch the values receive them only when the next evaluation is due, so that a resumed run makes the same
/// decisions. If the evaluation has not ended at that time, the training waits for it. The session also waits for a running evaluation
/// before it saves a checkpoint, and when it is closed. A `best_checkpoint_hook` saves the state that was evaluated, not the current one.
///
/// After a stop, in a close, and before the end of the process, the session waits only until `session_requests::end_of_waits`. An
/// evaluation that has not ended by then ends after its current batch. A warning is logged, the values are lost, and the close of the
/// session throws `deadline_exceeded_error`, unless the process is about to end. If the newest checkpoint contains the evaluated state, a
/// resumed session evaluates this state again. The destructor of the session waits until the current batch is evaluated.
///
/// A session over a graph of TensorFlow does not compile with `beside`, because its state is not in a model object.
/// @errors   `invalid_argument_error`, thrown by the creation of the session, if `other` is the model that the session trains.
/// @lifetime `other` must outlive the session. No other code may use `other` until the session is closed or destroyed.
template<class Model>
[[nodiscard]] beside_model<Model> beside(Model& other) {
  return {&other};
}

/// The hook that `evaluate_every` returns. A session gets a copy of the hook. All copies share the state, so you can still call `value` of
/// your own copy. Give copies of one hook to one session only. `Other` is the type of the model of `beside`, or void.
template<class Other, class Batches, class Evaluate, class... Measures>
class evaluation_hook : public detail::beside_evaluations {
  using parts = detail::evaluation_parts<Batches, Evaluate, Measures...>;

public:
  evaluation_hook(evaluate_every_options options, beside_model<Other> place, Batches batches, Evaluate evaluate, Measures... measures)
      : beside_evaluations(std::move(options), {measures.name...},
                           [other = place.model, all = std::make_shared<parts>(std::move(batches), std::move(evaluate), measures...)](
                               const snapshot& taken, const std::stop_token& cancelled) {
                             stepwell::restore(other->variables(), taken);
                             return all->run(*other, [&] { return cancelled.stop_requested(); });
                           }),
        other_(place.model) {}

  void after_create_session(auto& session, auto& /*threads*/) {
    using raw = std::remove_cvref_t<decltype(session.raw_session())>;
    static_assert(!detail::has_pull<raw>,
                  "stepwell: `beside` evaluates a second model object, but the state of this session is not in a model object (it is in a "
                  "graph, for example); evaluate in the loop, or evaluate checkpoints in another session");
    check_is_other(other_, std::addressof(detail::subject_in_raw(session.raw_session())));
    start(session, session.global_step());
  }
  void after_run(auto& context, const auto&) {
    const std::int64_t step = context.global_step();
    if (take_due(context, step)) [[unlikely]] { evaluate(context, step); }
  }
  void end(auto& /*session*/) { finish(); }

private:
  const void* other_;
};

template<class Batches, class Evaluate, class... Measures>
class evaluation_hook<void, Batches, Evaluate, Measures...> : public detail::loop_evaluations {
  using parts = detail::evaluation_parts<Batches, Evaluate, Measures...>;

public:
  evaluation_hook(evaluate_every_options options, beside_model<void> /*place*/, Batches batches, Evaluate evaluate, Measures... measures)
      : loop_evaluations(std::move(options), {measures.name...}),
        parts_(std::make_shared<parts>(std::move(batches), std::move(evaluate), std::move(measures)...)) {}
  /// A move is a copy.
  evaluation_hook(const evaluation_hook&) = default;
  evaluation_hook& operator=(const evaluation_hook&) = default;
  ~evaluation_hook() = default;

  void after_create_session(auto& session, auto& /*threads*/) {
    if (start(session, session.global_step())) { evaluate_now(session, session.global_step()); }
  }
  void after_run(auto& context, const auto&) {
    const std::int64_t step = context.global_step();
    if (take_due(context, step)) [[unlikely]] { evaluate_now(context, step); }
  }
  void end(auto& /*session*/) { finish(); }

private:
  void evaluate_now(auto& session, std::int64_t step) {
    auto& raw = session.raw_session();
    [[maybe_unused]] const auto alone = detail::alone_with(raw);
    evaluate(session, step, [&](function_ref<bool()> stops) { return parts_->run(detail::subject_in_raw(raw), stops); });
  }

  std::shared_ptr<parts> parts_;
};

namespace detail {

template<class Other, class Source, class Evaluate, class... Measures>
  requires(!is_measured<Evaluate>)
auto evaluation_of(evaluate_every_options options, beside_model<Other> place, Source&& source, Evaluate evaluate, Measures... measures) {
  using batches = evaluation_batches<Source>;
  return evaluation_hook<Other, batches, Evaluate, Measures...>(std::move(options), place, batches(std::forward<Source>(source)),
                                                                std::move(evaluate), std::move(measures)...);
}
template<class Other, class Evaluate, class... Measures>
  requires(is_measured<Measures> && ...)
auto evaluation_of(evaluate_every_options options, beside_model<Other> place, Evaluate evaluate, Measures... measures) {
  return evaluation_hook<Other, no_batches, Evaluate, Measures...>(std::move(options), place, {}, std::move(evaluate),
                                                                   std::move(measures)...);
}

template<class Other, class... Given>
auto checked_evaluation(evaluate_every_options options, beside_model<Other> place, Given&&... given) {
  if constexpr (ends_with_measure<Given...>) {
    return detail::evaluation_of(std::move(options), place, std::forward<Given>(given)...);
  } else {
    static_assert(sizeof...(Given) > 1000,
                  "stepwell: the last arguments of evaluate_every are the metrics: evaluate_every(500, test_batches, &network::score, "
                  "measure(\"loss\", &score::loss))");
  }
}

}  // namespace detail

/// Returns a hook that evaluates the model in the training loop: `evaluate_every(options, source, evaluate, measures...)`. For each batch of
/// `source`, the hook calls `evaluate(model, batch)` and adds the result to the metrics. `evaluate` is a const member function of the model
/// or any callable, and should not change the model. `source` is of one of three kinds: a range of batches; a seekable source, which is
/// rewound for each evaluation; or a function that returns a source. If `evaluate` needs no data, omit `source`: each evaluation then calls
/// `evaluate(model)` once.
///
/// The values are logged, written as summaries, and passed to hooks that watch `value(name)`. If a hook of the same phase changes the
/// model, pass that hook to the session before this one. The newest values and their history are the state of this hook, and are part of the
/// checkpoints.
/// If the process is about to end and no time is left (see `session_requests::end_of_waits`), the evaluation ends after its current batch,
/// and a warning is logged. The run that continues from the checkpoint of this step evaluates the state again, before its first step.
/// @errors   `invalid_argument_error` that names an invalid option. Exceptions of `evaluate` are failures of the run. If `evaluate` runs
///   `beside` the training, its exception is thrown later, when the session waits for the evaluation.
/// @lifetime An lvalue source must outlive the session.
/// @cost     At most one division for each run. A period in epochs also calls `is_last_of_epoch` of the source. During an evaluation the
///           session does no step, unless the evaluation runs `beside` the training.
template<class... Given>
[[nodiscard]] auto evaluate_every(evaluate_every_options options, Given&&... given) {
  return detail::checked_evaluation(std::move(options), beside_model<void>{}, std::forward<Given>(given)...);
}
/// Like the overload above, but evaluates beside the training, see `beside`.
template<class Model, class... Given>
[[nodiscard]] auto evaluate_every(evaluate_every_options options, beside_model<Model> place, Given&&... given) {
  return detail::checked_evaluation(std::move(options), place, std::forward<Given>(given)...);
}
/// Like the overloads above, with a period instead of `evaluate_every_options`: `evaluate_every(500, ...)`. All options except the period
/// have their defaults.
template<std::convertible_to<evaluation_period> Period, class... Given>
auto evaluate_every(Period every, Given&&... given) {
  return stepwell::evaluate_every(evaluate_every_options{.every = every}, std::forward<Given>(given)...);
}

}  // namespace stepwell
