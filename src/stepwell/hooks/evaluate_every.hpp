// SPDX-License-Identifier: Apache-2.0
//
// Evaluation in the training loop: every so many steps, epochs or seconds, in the loop or beside it.
//
//     auto tested = evaluate_every(epochs(1), test_batches, &network::score, measure("accuracy", metrics::mean(), &score::accuracy));
//     auto session = monitored_training_session(model, options, tested, early_stopping_hook{tested.value("accuracy"), {...}});
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hook/evaluated_value.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/scheduled_hook.hpp"
#include "stepwell/kernel/metrics.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stepwell {

/// A number of epochs, as a period: `evaluate_every(epochs(1), ...)`.
struct epochs {
  explicit constexpr epochs(std::int64_t given) : count(given) {}
  std::int64_t count;
};

/// The period of an evaluation: a number of steps, `epochs`, or a time such as `30s`.
class evaluation_period {
public:
  template<std::integral Steps>
  explicit(false) constexpr evaluation_period(Steps steps) : steps_(static_cast<std::int64_t>(steps)) {}
  explicit(false) constexpr evaluation_period(stepwell::epochs given) : epochs_(given.count) {}
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
  /// The evaluation is made after the first run that reaches each multiple of this number of steps, after the last batch of each so many
  /// epochs, or after the first run that ends so much later than the last evaluation. A time depends on the machine, so a resumed run then
  /// may evaluate other steps.
  evaluation_period every;
  std::string name = "evaluation";  ///< Name of the hook's state in checkpoints, and the beginning of its tags in event files.
  bool log = true;                  ///< Log the values of each evaluation.
  bool summaries = true;            ///< Write the values to the event file of the session, if it has one, as `name/METRIC`.
};

/// One metric of an evaluation. `Metric` is a streaming metric (metrics.hpp), a copy of which is reset for each evaluation.
template<class Metric, class Projection>
struct measured {
  std::string name;
  Metric metric;
  Projection projection;
};

/// Returns a metric of an evaluation: for each batch, `metric.update(...)` is called with the value of `projection(result)`, where `result`
/// is the result of the evaluation function. A tuple or pair becomes several arguments: a mean weighted by the size of the batch
/// has a projection that returns `std::pair(mean, size)`. A projection may instead take the metric and the result, and update the metric.
template<class Metric, class Projection>
  requires metrics::streaming_metric<Metric>
[[nodiscard]] measured<Metric, Projection> measure(std::string name, Metric metric, Projection projection) {
  return {std::move(name), std::move(metric), std::move(projection)};
}
/// Returns the mean of `projection(result)` over all batches as a metric.
template<class Projection>
[[nodiscard]] measured<metrics::mean, Projection> measure(std::string name, Projection projection) {
  return {std::move(name), metrics::mean(), std::move(projection)};
}

namespace detail {

template<class T>
inline constexpr bool is_measured = false;
template<class Metric, class Projection>
inline constexpr bool is_measured<measured<Metric, Projection>> = true;

template<class T>
concept tuple_like = requires { std::tuple_size<T>::value; };

/// Returns a number as a double, if the metric takes one. Returns other values unchanged.
template<class Metric, class T>
decltype(auto) metric_argument(const T& value) {
  if constexpr (std::is_arithmetic_v<T> && requires(Metric& metric) { metric.update(double{}); }) {
    return static_cast<double>(value);
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
    if constexpr (tuple_like<std::remove_cvref_t<decltype(value)>>) {
      std::apply(add, value);
    } else {
      if (is_present(value)) { add(present(value)); }
    }
  }
}

/// The data of an evaluation that needs none: the evaluation function is called once, with the model.
struct no_batches {
  template<class Action>
  static std::int64_t for_each(Action&& action) {
    action();
    return 1;
  }
};

/// The data of an evaluation: a function that makes a source, a seekable source, which is rewound, or a range.
template<class Given>  // an lvalue reference, or the type that is owned
class evaluation_batches {
  using given = std::remove_reference_t<Given>;

public:
  explicit evaluation_batches(Given&& source) : source_(std::forward<Given>(source)) {
    if constexpr (data::seekable_source<given>) { begin_ = source_.position(); }
  }

  /// Calls `action` with each batch. Returns their number.
  template<class Action>
  std::int64_t for_each(Action&& action) {
    if constexpr (data::seekable_source<given>) {
      source_.seek(begin_);
      return each_of(source_, action);
    } else if constexpr (std::invocable<given&>) {
      auto&& made = std::invoke(source_);
      return each_of(made, action);
    } else {
      static_assert(std::ranges::input_range<given&>,
                    "stepwell: the data of an evaluation is a range of batches, a seekable source, or a function that returns a source; "
                    "another source could be read only once");
      auto made = data::source(source_);
      return each_of(made, action);
    }
  }

private:
  static std::int64_t each_of(auto& source, auto& action) {
    std::int64_t count = 0;
    for (auto* batch = source.peek(); batch != nullptr; batch = source.peek()) {
      action(std::as_const(*batch));
      ++count;
      source.advance();
    }
    return count;
  }

  Given source_;
  std::uint64_t begin_ = 0;
};

/// The part of an evaluation that does not depend on the types of model and data: when it is due, and what happens with its values.
class evaluations {
public:
  /// Returns the metric `name`, for hooks that watch it.
  /// @errors `invalid_argument_error` that lists the metrics if there is no such metric.
  [[nodiscard]] evaluated_value value(std::string_view name) const;

  /// Returns the state of the hook. Blocks until an evaluation beside the training has ended.
  /// @errors The failure of that evaluation.
  [[nodiscard]] variable_list variables();
  [[nodiscard]] const std::string& state_name() const noexcept;

  /// The values of one evaluation.
  struct outcome {
    std::vector<double> values;
    std::int64_t batches = 0;
  };
  class state;

protected:
  using evaluate_function = std::function<outcome()>;
  using evaluate_snapshot_function = std::function<outcome(const snapshot&)>;

  evaluations(evaluate_every_options options, std::vector<std::string> names);

  void start(const session_requests& session, std::int64_t step);
  /// Returns true if an evaluation is due after this run, once for each evaluation.
  [[nodiscard]] bool take_due(const session_requests& session, std::int64_t step);
  /// Evaluates the current state. The values take effect at once.
  void evaluate_here(std::int64_t step, const evaluate_function& evaluate);
  /// Waits for the previous evaluation, whose values now take effect, and requests an evaluation of the current state.
  void evaluate_beside(const session_requests& session, std::int64_t step);
  void set_evaluation_of_snapshots(evaluate_snapshot_function evaluate);
  /// Waits for the evaluation beside the training.
  void finish();

private:
  std::shared_ptr<state> state_;  // shared by copies of the hook, and with `evaluated_value`
};

}  // namespace detail

/// The model with which an evaluation beside the training is made. See `beside`.
template<class Model>
struct beside_model {
  Model* model;
};

/// Makes `evaluate_every` evaluate beside the training: `evaluate_every(500, beside(copy), test_batches, &network::score, ...)`. A thread
/// restores a snapshot of the state into `other`, which is another object of the same model, and evaluates it, while the training continues.
/// The values take effect when the next evaluation is due. The training waits there if necessary, and also before a checkpoint is saved,
/// so that a resumed run makes the same decisions. A `best_checkpoint_hook` saves the state that was evaluated.
/// @lifetime `other` must outlive the session. No other code may use it meanwhile.
template<class Model>
[[nodiscard]] beside_model<Model> beside(Model& other) {
  return {&other};
}

/// The hook that `evaluate_every` returns. Copies share the state, so that `value` can be called before and after a copy was given to a
/// session. Give it to one session only.
template<class Place, class Batches, class Evaluate, class... Measures>
class evaluation_hook : public detail::evaluations {
public:
  evaluation_hook(evaluate_every_options options, Place place, Batches batches, Evaluate evaluate, Measures... measures)
      : evaluations(std::move(options), {measures.name...}),
        parts_(std::make_shared<parts>(std::move(place), std::move(batches), std::move(evaluate), std::move(measures)...)) {
    if constexpr (is_beside) {
      set_evaluation_of_snapshots([parts = parts_](const snapshot& taken) {
        stepwell::restore(parts->place.model->variables(), taken);
        return parts->run(*parts->place.model);
      });
    }
  }

  void after_create_session(auto& session, auto& /*threads*/) { start(session, session.global_step()); }
  void after_run(auto& context, const auto&) {
    const std::int64_t step = context.global_step();
    if (!take_due(context, step)) [[likely]] { return; }
    if constexpr (is_beside) {
      evaluate_beside(context, step);
    } else {
      auto& raw = context.raw_session();
      [[maybe_unused]] const auto alone = detail::alone_with(raw);
      evaluate_here(step, [&] { return parts_->run(detail::model_in(raw)); });
    }
  }
  void end(auto& /*session*/) { finish(); }

private:
  static constexpr bool is_beside = !std::same_as<Place, std::monostate>;

  struct parts {
    parts(Place where, Batches data, Evaluate function, Measures... given)
        : place(std::move(where)), batches(std::move(data)), evaluate(std::move(function)), measures(std::move(given)...) {}

    /// Evaluates `model`.
    outcome run(auto& model) {
      std::apply([](auto&... one) { (one.metric.reset(), ...); }, measures);
      const auto count = batches.for_each([&](const auto&... batch) {
        static_assert(std::invocable<Evaluate&, decltype(model), decltype(batch)...>,
                      "stepwell: the function of evaluate_every takes the model and a batch; without data, only the model");
        const auto& result = std::invoke(evaluate, model, batch...);
        std::apply([&](auto&... one) { (detail::update_metric(one, result), ...); }, measures);
      });
      return {std::apply([](const auto&... one) { return std::vector<double>{one.metric.value()...}; }, measures), count};
    }

    Place place;
    Batches batches;
    Evaluate evaluate;
    std::tuple<Measures...> measures;
  };
  std::shared_ptr<parts> parts_;
};

/// Returns a hook that evaluates the model in the training loop: it calls `evaluate(model, batch)` for each batch of `source`, and adds the
/// results to the metrics. `evaluate` is a const member function of the model or any callable, and should not change the model. `source` is a
/// range of batches, a seekable source, which is rewound for each evaluation, or a function that returns a source. Without data, leave
/// `source` out; `evaluate(model)` is then called once.
///
/// The values are logged, written as summaries, and passed to hooks that watch `value(name)`. In the session, place hooks that
/// change the model before this one. The hook's state, the newest values, is part of the checkpoints.
/// @errors   `invalid_argument_error` that names an invalid option. Exceptions of `evaluate` are failures of the run.
/// @lifetime An lvalue source is referred to.
/// @cost     One division for each run. During an evaluation the session does no step, unless it is made `beside` the training.
template<class Source, class Evaluate, class... Measures>
  requires(sizeof...(Measures) > 0 && (detail::is_measured<Measures> && ...) && !detail::is_measured<Evaluate>)
[[nodiscard]] auto evaluate_every(evaluate_every_options options, Source&& source, Evaluate evaluate, Measures... measures) {
  using batches = detail::evaluation_batches<Source>;
  return evaluation_hook<std::monostate, batches, Evaluate, Measures...>(std::move(options), {}, batches(std::forward<Source>(source)),
                                                                         std::move(evaluate), std::move(measures)...);
}
template<class Evaluate, class... Measures>
  requires(sizeof...(Measures) > 0 && (detail::is_measured<Measures> && ...))
[[nodiscard]] auto evaluate_every(evaluate_every_options options, Evaluate evaluate, Measures... measures) {
  return evaluation_hook<std::monostate, detail::no_batches, Evaluate, Measures...>(std::move(options), {}, {}, std::move(evaluate),
                                                                                    std::move(measures)...);
}
template<class Model, class Source, class Evaluate, class... Measures>
  requires(sizeof...(Measures) > 0 && (detail::is_measured<Measures> && ...) && !detail::is_measured<Evaluate>)
[[nodiscard]] auto evaluate_every(evaluate_every_options options, beside_model<Model> place, Source&& source, Evaluate evaluate,
                                  Measures... measures) {
  using batches = detail::evaluation_batches<Source>;
  return evaluation_hook<beside_model<Model>, batches, Evaluate, Measures...>(
      std::move(options), place, batches(std::forward<Source>(source)), std::move(evaluate), std::move(measures)...);
}
template<class Model, class Evaluate, class... Measures>
  requires(sizeof...(Measures) > 0 && (detail::is_measured<Measures> && ...))
[[nodiscard]] auto evaluate_every(evaluate_every_options options, beside_model<Model> place, Evaluate evaluate, Measures... measures) {
  return evaluation_hook<beside_model<Model>, detail::no_batches, Evaluate, Measures...>(std::move(options), place, {}, std::move(evaluate),
                                                                                         std::move(measures)...);
}
/// Like the overloads above, with the default of all other options: `evaluate_every(500, ...)`.
template<std::convertible_to<evaluation_period> Period, class... Given>
[[nodiscard]] auto evaluate_every(Period every, Given&&... given) {
  return stepwell::evaluate_every(evaluate_every_options{.every = every}, std::forward<Given>(given)...);
}

}  // namespace stepwell
