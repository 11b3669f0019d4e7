// SPDX-License-Identifier: Apache-2.0
//
// Learning-rate schedules as pure functions of the step: `schedule(step)` returns the rate of the run that follows after `step` steps. A
// resumed run therefore has the same rates, without state in the checkpoint. The formulas are those of Keras 3
// (keras.optimizers.schedules), and for `one_cycle` those of PyTorch (torch.optim.lr_scheduler.OneCycleLR).
//
// Only `reduce_on_plateau` is not such a function: it depends on a metric and has state.
#pragma once

#include "stepwell/base/variable.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::schedules {

/// A function that takes a step, which is at least 0, and returns a rate.
template<class Schedule>
concept schedule = std::move_constructible<Schedule> && requires(const Schedule& rate, std::int64_t step) {
  { rate(step) } -> std::convertible_to<double>;
};

/// A rate that is the same at all steps.
class constant {
public:
  explicit constant(double rate) : rate_(rate) {}
  [[nodiscard]] double operator()(std::int64_t /*step*/) const noexcept { return rate_; }

private:
  double rate_;
};

/// The rate is `values[i]` up to and including step `boundaries[i]`, and the last value afterwards (Keras' PiecewiseConstantDecay).
class piecewise_constant {
public:
  /// @errors `invalid_argument_error` if there is not exactly one value more than boundaries, or if the boundaries do not increase.
  piecewise_constant(std::vector<std::int64_t> boundaries, std::vector<double> values);
  [[nodiscard]] double operator()(std::int64_t step) const noexcept;

private:
  std::vector<std::int64_t> boundaries_;
  std::vector<double> values_;
};

/// Options of `exponential_decay`.
struct exponential_decay_options {
  double initial = 0;
  std::int64_t decay_steps = 0;  ///< Above zero.
  double decay_rate = 0;         ///< The factor after `decay_steps` steps, at least zero.
  bool staircase = false;        ///< True: the factor is applied at each multiple of `decay_steps` instead of gradually.
};
/// The rate initial * decay_rate ^ (step / decay_steps).
class exponential_decay {
public:
  /// @errors `invalid_argument_error` that names the member.
  explicit exponential_decay(exponential_decay_options options);
  [[nodiscard]] double operator()(std::int64_t step) const noexcept;

private:
  exponential_decay_options options_;
};

/// Options of `polynomial_decay`.
struct polynomial_decay_options {
  double initial = 0;
  std::int64_t decay_steps = 0;  ///< Above zero.
  double end = 0.0001;
  double power = 1;  ///< Above zero; 1 is linear.
  /// True: the formula uses, instead of `decay_steps`, its smallest multiple that is not below the step. The rate then rises again after
  /// each multiple of `decay_steps`.
  bool cycle = false;
};
/// The rate (initial - end) * (1 - step / decay_steps) ^ power + end up to step `decay_steps`, and `end` afterwards.
class polynomial_decay {
public:
  /// @errors `invalid_argument_error` that names the member.
  explicit polynomial_decay(polynomial_decay_options options);
  [[nodiscard]] double operator()(std::int64_t step) const noexcept;

private:
  polynomial_decay_options options_;
};

/// Options of `cosine_decay`.
struct cosine_decay_options {
  double initial = 0;
  std::int64_t decay_steps = 0;  ///< Above zero.
  double alpha = 0;              ///< The rate at the end, as a fraction of `initial`.
};
/// The rate initial * ((1 - alpha) * (1 + cos(pi * step / decay_steps)) / 2 + alpha) up to step `decay_steps`, and initial * alpha
/// afterwards.
class cosine_decay {
public:
  /// @errors `invalid_argument_error` that names the member.
  explicit cosine_decay(cosine_decay_options options);
  [[nodiscard]] double operator()(std::int64_t step) const noexcept;

private:
  cosine_decay_options options_;
};

/// Options of `cosine_restarts`.
struct cosine_restarts_options {
  double initial = 0;
  std::int64_t first_decay_steps = 0;  ///< Length of the first period, above zero.
  double t_mul = 2;                    ///< Factor by which each period is longer than the one before it, at least 1.
  double m_mul = 1;                    ///< Factor from the height (first minus lowest rate) of a period to that of the next, at least zero.
  double alpha = 0;                    ///< The lowest rate, as a fraction of `initial`.
};
/// A cosine decay that begins again after each period (Keras' CosineDecayRestarts; Loshchilov and Hutter, "SGDR", 2017).
class cosine_restarts {
public:
  /// @errors `invalid_argument_error` that names the member.
  explicit cosine_restarts(cosine_restarts_options options);
  [[nodiscard]] double operator()(std::int64_t step) const noexcept;

private:
  cosine_restarts_options options_;
};

namespace detail {
void check_warm_up(std::int64_t steps);
}  // namespace detail

/// A rate that grows linearly for `steps` steps, from `from` to the first rate of another schedule, `then`. Afterwards, the rate is that of
/// `then`, which counts its steps from the end of the warm-up, as in Keras' CosineDecay with `warmup_target`.
template<schedule Then>
class warm_up {
public:
  /// @errors `invalid_argument_error` if `steps` is negative.
  warm_up(std::int64_t steps, Then then, double from = 0) : steps_(steps), then_(std::move(then)), from_(from) {
    detail::check_warm_up(steps);
  }
  [[nodiscard]] double operator()(std::int64_t step) const {
    if (step >= steps_) { return then_(step - steps_); }
    return from_ + (then_(0) - from_) * (static_cast<double>(step) / static_cast<double>(steps_));
  }

private:
  std::int64_t steps_;
  Then then_;
  double from_;
};

/// Options of `one_cycle`.
struct one_cycle_options {
  double max = 0;                 ///< The highest rate.
  std::int64_t total_steps = 0;   ///< At least 2.
  double rising = 0.3;            ///< Fraction of the steps in which the rate grows, above 0 and below 1.
  double div_factor = 25;         ///< The first rate is `max` / `div_factor`. Above zero.
  double final_div_factor = 1e4;  ///< The last rate is the first rate / `final_div_factor`. Above zero.
};
/// A rate that rises once and falls once, both along a cosine (Smith and Topin, "Super-Convergence", 2018). After `total_steps` steps, the
/// rate keeps its last value.
class one_cycle {
public:
  /// @errors `invalid_argument_error` that names the member.
  explicit one_cycle(one_cycle_options options);
  [[nodiscard]] double operator()(std::int64_t step) const noexcept;

private:
  one_cycle_options options_;
};

/// Options of `reduce_on_plateau`. The defaults are those of Keras' ReduceLROnPlateau.
struct reduce_on_plateau_options {
  double factor = 0.1;         ///< Factor of each reduction, above 0 and below 1.
  std::int64_t patience = 10;  ///< Number of values without an improvement before a reduction, above zero.
  double min_delta = 1e-4;     ///< A value is an improvement if it is better than the best one so far by more than this. At least zero.
  /// If above 1, the first `cooldown` - 1 values after a reduction do not count towards `patience`, as in Keras. At least zero.
  std::int64_t cooldown = 0;
  double min_rate = 0;    ///< A reduction never gives a rate below this. At least zero.
  bool maximize = false;  ///< True: higher values are better.
};

/// A rule that reduces a rate when a metric has stopped improving (a plateau). To save its state in checkpoints, add `variables()` to
/// those of the model or of a hook.
class reduce_on_plateau {
public:
  /// @errors `invalid_argument_error` that names the member.
  explicit reduce_on_plateau(reduce_on_plateau_options options);

  /// Adds a value of the metric, for example after each epoch. `rate` is the rate used so far. Returns the rate to use from now on. NaN is
  /// not an improvement. The new rate and `min_rate` are rounded to the type of `rate` (double for an integer) before they are compared. A
  /// reduction that would not change the rate is not done and not counted.
  template<class Rate>
    requires std::is_arithmetic_v<Rate>
  [[nodiscard]] auto update(double value, Rate rate) noexcept {
    using number = std::conditional_t<std::floating_point<Rate>, Rate, double>;
    const auto before = static_cast<number>(rate);
    const auto reduced =
        std::max(static_cast<number>(static_cast<double>(before) * options_.factor), static_cast<number>(options_.min_rate));
    return reduces(value, reduced < before) ? reduced : before;
  }
  /// Returns the best value so far. Empty if there was no value, or only NaN.
  [[nodiscard]] std::optional<double> best() const noexcept { return has_best_ != 0 ? std::optional(best_) : std::nullopt; }
  [[nodiscard]] std::int64_t reductions() const noexcept { return reductions_; }
  void reset() noexcept;
  [[nodiscard]] variable_list variables();

private:
  [[nodiscard]] bool is_better(double value) const noexcept;
  /// Adds a value. Returns true if the rate is reduced now. If `can_reduce` is false, it is not reduced.
  [[nodiscard]] bool reduces(double value, bool can_reduce) noexcept;

  reduce_on_plateau_options options_;
  double best_ = 0;
  std::int64_t has_best_ = 0;
  std::int64_t waited_ = 0;
  std::int64_t cooling_ = 0;
  std::int64_t reductions_ = 0;
};

}  // namespace stepwell::schedules
