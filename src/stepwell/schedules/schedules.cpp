// SPDX-License-Identifier: Apache-2.0
#include "stepwell/schedules/schedules.hpp"

#include "stepwell/base/error.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

namespace stepwell::schedules {
namespace {

/// Throws unless `is_valid`. NaN makes every comparison false, so it is never valid.
template<class Number>
void require(bool is_valid, std::string_view schedule, std::string_view member, Number value, std::string_view rule) {
  if (!is_valid) { throw invalid_argument_error(fmt::format("{}: {} is {}; it must be {}", schedule, member, value, rule)); }
}
void require_finite(std::string_view schedule, std::string_view member, double value) {
  require(std::isfinite(value), schedule, member, value, "a finite number");
}

/// Returns the number of whole periods.
double periods_in(std::int64_t steps, std::int64_t period) noexcept {
  const std::int64_t whole = steps / period;
  return static_cast<double>(whole);
}
double ratio(std::int64_t part, std::int64_t whole) noexcept { return static_cast<double>(part) / static_cast<double>(whole); }

/// Returns a value that goes from `first` at 0 to `last` at 1 along half a cosine.
double along_cosine(double first, double last, double progress) noexcept {
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

/// Returns the step of a restart. Returns the nearest whole number if `step`, which is a sum of `terms` + 1 rounded powers, differs from it
/// by rounding errors only: a factor such as 1.1 is not exact in binary, and the rate just before a restart is the lowest one.
double restart_at(double step, double terms) noexcept {
  const double whole = std::round(step);
  return std::abs(step - whole) <= 2 * (terms + 1) * std::numeric_limits<double>::epsilon() * step ? whole : step;
}

}  // namespace

piecewise_constant::piecewise_constant(std::vector<std::int64_t> boundaries, std::vector<double> values)
    : boundaries_(std::move(boundaries)), values_(std::move(values)) {
  if (values_.size() != boundaries_.size() + 1) {
    throw invalid_argument_error(fmt::format("piecewise_constant: {} values for {} boundaries; give one value more than boundaries",
                                             values_.size(), boundaries_.size()));
  }
  const auto wrong = std::ranges::adjacent_find(boundaries_, std::greater_equal());
  if (wrong != boundaries_.end()) {
    throw invalid_argument_error(fmt::format("piecewise_constant: the boundaries {} and {} do not increase", *wrong, *(wrong + 1)));
  }
}
double piecewise_constant::operator()(std::int64_t step) const noexcept {
  return values_[static_cast<std::size_t>(std::ranges::lower_bound(boundaries_, step) - boundaries_.begin())];
}

exponential_decay::exponential_decay(exponential_decay_options options) : options_(options) {
  require_finite("exponential_decay", "initial", options.initial);
  require(options.decay_steps > 0, "exponential_decay", "decay_steps", options.decay_steps, "above zero");
  require(options.decay_rate >= 0, "exponential_decay", "decay_rate", options.decay_rate, "at least zero");
}
double exponential_decay::operator()(std::int64_t step) const noexcept {
  const auto periods = options_.staircase ? periods_in(step, options_.decay_steps) : ratio(step, options_.decay_steps);
  return options_.initial * std::pow(options_.decay_rate, periods);
}

polynomial_decay::polynomial_decay(polynomial_decay_options options) : options_(options) {
  require_finite("polynomial_decay", "initial", options.initial);
  require_finite("polynomial_decay", "end", options.end);
  require(options.decay_steps > 0, "polynomial_decay", "decay_steps", options.decay_steps, "above zero");
  require(options.power > 0, "polynomial_decay", "power", options.power, "above zero");
}
double polynomial_decay::operator()(std::int64_t step) const noexcept {
  auto progress = std::min(ratio(step, options_.decay_steps), 1.0);
  if (options_.cycle && step > 0) {
    const auto periods = ratio(step, options_.decay_steps);
    progress = periods / std::ceil(periods);
  }
  return (options_.initial - options_.end) * std::pow(1 - progress, options_.power) + options_.end;
}

cosine_decay::cosine_decay(cosine_decay_options options) : options_(options) {
  require_finite("cosine_decay", "initial", options.initial);
  require_finite("cosine_decay", "alpha", options.alpha);
  require(options.decay_steps > 0, "cosine_decay", "decay_steps", options.decay_steps, "above zero");
}
double cosine_decay::operator()(std::int64_t step) const noexcept {
  return options_.initial * along_cosine(1, options_.alpha, std::min(ratio(step, options_.decay_steps), 1.0));
}

cosine_restarts::cosine_restarts(cosine_restarts_options options) : options_(options) {
  require_finite("cosine_restarts", "initial", options.initial);
  require_finite("cosine_restarts", "alpha", options.alpha);
  require(options.first_decay_steps > 0, "cosine_restarts", "first_decay_steps", options.first_decay_steps, "above zero");
  require(options.t_mul >= 1, "cosine_restarts", "t_mul", options.t_mul, "at least 1");
  require(options.m_mul >= 0, "cosine_restarts", "m_mul", options.m_mul, "at least zero");
}
double cosine_restarts::operator()(std::int64_t step) const noexcept {
  const auto first = static_cast<double>(options_.first_decay_steps);
  double restarts = 0;
  double length = first;
  double since = static_cast<double>(step);  // number of steps since the last restart
  if (options_.t_mul == 1) {
    restarts = periods_in(step, options_.first_decay_steps);
    since = static_cast<double>(step % options_.first_decay_steps);
  } else {
    const auto now = static_cast<double>(step);
    double end = first;
    while (now >= end) {
      since = now - end;
      length *= options_.t_mul;
      end = restart_at(end + length, ++restarts);
    }
  }
  const double height = std::pow(options_.m_mul, restarts) / 2 * (1 + std::cos(std::numbers::pi * since / length));
  return options_.initial * ((1 - options_.alpha) * height + options_.alpha);
}

void detail::check_warm_up(std::int64_t steps) { require(steps >= 0, "warm_up", "steps", steps, "at least zero"); }

one_cycle::one_cycle(one_cycle_options options) : options_(options) {
  require_finite("one_cycle", "max", options.max);
  require(options.total_steps >= 2, "one_cycle", "total_steps", options.total_steps, "at least 2");
  require(options.rising > 0 && options.rising < 1, "one_cycle", "rising", options.rising, "above 0 and below 1");
  require(options.div_factor > 0, "one_cycle", "div_factor", options.div_factor, "above zero");
  require(options.final_div_factor > 0, "one_cycle", "final_div_factor", options.final_div_factor, "above zero");
}
double one_cycle::operator()(std::int64_t step) const noexcept {
  const double first = options_.max / options_.div_factor;
  const double last = first / options_.final_div_factor;
  const auto end = static_cast<double>(options_.total_steps - 1);
  const double top = options_.rising * static_cast<double>(options_.total_steps) - 1;
  const double now = std::min(static_cast<double>(step), end);
  if (now <= top) { return top > 0 ? along_cosine(first, options_.max, now / top) : options_.max; }
  return along_cosine(options_.max, last, (now - top) / (end - top));
}

reduce_on_plateau::reduce_on_plateau(reduce_on_plateau_options options) : options_(options) {
  require(options.factor > 0 && options.factor < 1, "reduce_on_plateau", "factor", options.factor, "above 0 and below 1");
  require(options.patience > 0, "reduce_on_plateau", "patience", options.patience, "above zero");
  require(options.min_delta >= 0, "reduce_on_plateau", "min_delta", options.min_delta, "at least zero");
  require(options.cooldown >= 0, "reduce_on_plateau", "cooldown", options.cooldown, "at least zero");
  require(options.min_rate >= 0, "reduce_on_plateau", "min_rate", options.min_rate, "at least zero");
}
bool reduce_on_plateau::is_better(double value) const noexcept {
  if (std::isnan(value)) { return false; }
  if (has_best_ == 0) { return true; }
  return options_.maximize ? value > best_ + options_.min_delta : value < best_ - options_.min_delta;
}
bool reduce_on_plateau::reduces(double value, bool can_reduce) noexcept {
  if (cooling_ > 0) {
    --cooling_;
    waited_ = 0;
  }
  if (is_better(value)) {
    best_ = value;
    has_best_ = 1;
    waited_ = 0;
    return false;
  }
  if (cooling_ > 0 || ++waited_ < options_.patience || !can_reduce) { return false; }
  cooling_ = options_.cooldown;
  waited_ = 0;
  ++reductions_;
  return true;
}
void reduce_on_plateau::reset() noexcept {
  best_ = 0;
  has_best_ = waited_ = cooling_ = reductions_ = 0;
}
variable_list reduce_on_plateau::variables() {
  return stepwell::variables(
      {{"best", best_}, {"has_best", has_best_}, {"waited", waited_}, {"cooling", cooling_}, {"reductions", reductions_}});
}

}  // namespace stepwell::schedules
