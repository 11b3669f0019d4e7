// SPDX-License-Identifier: Apache-2.0
//
// Reference values: computed in Python from the formulas in the documentation of Keras 3 and, for one_cycle, of PyTorch.
#include "support/catch.hpp"

#include <stepwell/base/error.hpp>
#include <stepwell/schedules/schedules.hpp>

#include <boost/multiprecision/cpp_int.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

namespace schedules = stepwell::schedules;

namespace {

using points = std::vector<std::pair<std::int64_t, double>>;

void check(const schedules::schedule auto& rate, const points& expected) {
  for (const auto& [step, value] : expected) {
    INFO("step " << step);
    CHECK(rate(step) == Approx(value).epsilon(1e-12));
  }
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
static_assert(schedules::schedule<schedules::warm_up<schedules::cosine_decay>> && !schedules::schedule<double>);

}  // namespace

TEST_CASE("constant is the same rate at all steps", "[kernel][schedules]") {
  check(schedules::constant(0.1), {{0, 0.1}, {1'000'000, 0.1}});
}

TEST_CASE("piecewise_constant keeps a value up to and including its boundary", "[kernel][schedules]") {
  const schedules::piecewise_constant rate({100, 200}, {1, 0.5, 0.1});
  check(rate, {{0, 1}, {100, 1}, {101, 0.5}, {200, 0.5}, {201, 0.1}, {1'000'000, 0.1}});
  CHECK_THROWS_WITH(schedules::piecewise_constant({1}, {1}), ContainsSubstring("1 values for 1 boundaries"));
  CHECK_THROWS_WITH(schedules::piecewise_constant({5, 5}, {1, 2, 3}), ContainsSubstring("boundaries 5 and 5 do not increase"));
}

TEST_CASE("exponential_decay multiplies gradually, or in steps", "[kernel][schedules]") {
  check(schedules::exponential_decay({.initial = 0.1, .decay_steps = 1000, .decay_rate = 0.96}),
        {{0, 0.1}, {500, 0.09797958971132713}, {1000, 0.096}, {2500, 0.09029798987795908}});
  check(schedules::exponential_decay({.initial = 0.1, .decay_steps = 1000, .decay_rate = 0.96, .staircase = true}),
        {{999, 0.1}, {1000, 0.096}, {2500, 0.09216}});
}

TEST_CASE("polynomial_decay ends at its end, or begins again", "[kernel][schedules]") {
  check(schedules::polynomial_decay({.initial = 0.1, .decay_steps = 1000, .end = 0.01, .power = 0.5}),
        {{0, 0.1}, {250, 0.08794228634059947}, {500, 0.07363961030678928}, {1000, 0.01}, {5000, 0.01}});
  check(schedules::polynomial_decay({.initial = 0.1, .decay_steps = 1000, .end = 0.01, .cycle = true}),
        {{0, 0.1}, {500, 0.055}, {1000, 0.01}, {1500, 0.0325}, {2000, 0.01}, {2500, 0.025}});
}

TEST_CASE("cosine_decay goes along half a cosine to alpha", "[kernel][schedules]") {
  check(schedules::cosine_decay({.initial = 0.1, .decay_steps = 1000, .alpha = 0.1}),
        {{0, 0.1}, {250, 0.08681980515339464}, {500, 0.055}, {1000, 0.01}, {2000, 0.01}});
}

TEST_CASE("cosine_restarts begins again after each period, also at its exact end", "[kernel][schedules]") {
  check(schedules::cosine_restarts({.initial = 0.5, .first_decay_steps = 100, .t_mul = 2, .m_mul = 0.8, .alpha = 0.1}),
        {{0, 0.5},
         {50, 0.275},
         {99, 0.05011102391771039},
         {100, 0.41},
         {200, 0.23},
         {299, 0.050022206153301094},
         {300, 0.338},
         {650, 0.060961347318374715},
         {699, 0.05000444129915029},
         {700, 0.2804}});
  check(schedules::cosine_restarts({.initial = 0.5, .first_decay_steps = 100, .t_mul = 1, .m_mul = 0.5}),
        {{0, 0.5}, {50, 0.25}, {150, 0.125}, {250, 0.0625}});
}

TEST_CASE("warm_up grows linearly to the first rate of the schedule after it", "[kernel][schedules]") {
  const schedules::warm_up rate(100, schedules::cosine_decay({.initial = 0.1, .decay_steps = 1000, .alpha = 0.1}));
  check(rate, {{0, 0}, {50, 0.05}, {100, 0.1}, {350, 0.08681980515339464}, {1100, 0.01}});
  check(schedules::warm_up(10, schedules::constant(3), 1), {{0, 1}, {5, 2}, {10, 3}});
  check(schedules::warm_up(0, schedules::constant(3)), {{0, 3}});
}

TEST_CASE("one_cycle rises and falls once", "[kernel][schedules]") {
  check(schedules::one_cycle({.max = 0.1, .total_steps = 100}), {{0, 0.004},
                                                                 {10, 0.029516394846410082},
                                                                 {29, 0.1},
                                                                 {30, 0.09994965352845243},
                                                                 {60, 0.05892800902855288},
                                                                 {99, 4e-07},
                                                                 {1000, 4e-07}});
}

TEST_CASE("reduce_on_plateau reduces after patience values without an improvement", "[kernel][schedules]") {
  // By hand, after the code of Keras' ReduceLROnPlateau.
  schedules::reduce_on_plateau plateau({.factor = 0.5, .patience = 2, .min_delta = 0.1, .cooldown = 2, .min_rate = 0.2});
  double rate = 1;
  std::vector<double> rates;
  for (const double value : {5.0, 4.0, 3.95, 4.0, 4.0, 4.0, 4.0, not_a_number, 3.0, 3.0, 3.0, 3.0}) {
    rates.push_back(rate = plateau.update(value, rate));
  }
  CHECK(rates == std::vector<double>{1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2});
  CHECK(plateau.best() == 3);
  CHECK(plateau.reductions() == 3);
  plateau.reset();
  CHECK_FALSE(plateau.best());
}

TEST_CASE("cosine_restarts restarts at the steps that rational arithmetic gives", "[kernel][schedules]") {
  using boost::multiprecision::cpp_rational;
  struct factor {
    double t_mul;
    cpp_rational exact;
  };
  for (const auto& [t_mul, exact] : {factor{1.1, {11, 10}}, factor{1.2, {6, 5}}, factor{1.3, {13, 10}}, factor{1.5, {3, 2}},
                                     factor{1.7, {17, 10}}, factor{2.5, {5, 2}}, factor{3, 3}, factor{1, 1}}) {
    for (const std::int64_t first : {1, 3, 10, 100, 1000}) {
      const schedules::cosine_restarts rate({.initial = 1, .first_decay_steps = first, .t_mul = t_mul, .m_mul = 0.9});
      cpp_rational begin = 0;
      cpp_rational length = first;
      double height = 1;
      double worst = 0;
      for (std::int64_t step = 0; step < 3000; ++step) {
        while (step >= begin + length) {
          begin += length;
          length *= exact;
          height *= 0.9;
        }
        const auto progress = static_cast<double>(cpp_rational((step - begin) / length));
        worst = std::max(worst, std::abs(rate(step) - height / 2 * (1 + std::cos(std::numbers::pi * progress))));
      }
      CAPTURE(t_mul, first);
      CHECK(worst < 1e-9);
    }
  }
}

TEST_CASE("reduce_on_plateau stops at min_rate as the type of the rate holds it", "[kernel][schedules]") {
  const auto reductions = [](auto rate, schedules::reduce_on_plateau_options options) {
    schedules::reduce_on_plateau plateau(options);
    for (int i = 0; i < 2000; ++i) { rate = plateau.update(1, rate); }
    return std::pair(static_cast<double>(rate), plateau.reductions());
  };
  CHECK(reductions(0.01F, {.factor = 0.1, .patience = 2, .min_rate = 0.001}) == std::pair(static_cast<double>(0.001F), std::int64_t{1}));
  CHECK(reductions(0.01, {.factor = 0.1, .patience = 2, .min_rate = 0.001}) == std::pair(0.001, std::int64_t{1}));
  CHECK(reductions(0.1F, {.factor = 0.5, .patience = 1, .min_rate = 0.07}) == std::pair(static_cast<double>(0.07F), std::int64_t{1}));
  const float least = std::numeric_limits<float>::denorm_min();  // half of it is 0, and 0.9 of it is it again
  CHECK(reductions(least, {.factor = 0.9, .patience = 1}) == std::pair(static_cast<double>(least), std::int64_t{0}));
}

TEST_CASE("reduce_on_plateau continues from its saved state", "[kernel][schedules]") {
  const schedules::reduce_on_plateau_options options{.patience = 2, .maximize = true};
  schedules::reduce_on_plateau first(options);
  CHECK(first.update(1, 1) == 1);
  CHECK(first.update(1, 1) == 1);
  schedules::reduce_on_plateau second(options);
  auto from = first.variables();
  auto to = second.variables();
  for (std::size_t i = 0; i < to.size(); ++i) { to[i].copy_from(from[i].bytes()); }
  CHECK(second.update(0, 1) == Approx(0.1));
}

TEST_CASE("options of schedules that make no sense are refused by name", "[kernel][schedules]") {
  CHECK_THROWS_WITH(schedules::exponential_decay({.initial = 1, .decay_steps = 0}), ContainsSubstring("decay_steps is 0"));
  CHECK_THROWS_WITH(schedules::exponential_decay({.initial = not_a_number, .decay_steps = 1}), ContainsSubstring("initial is nan"));
  CHECK_THROWS_WITH(schedules::exponential_decay({.initial = 1, .decay_steps = 1, .decay_rate = -1}),
                    ContainsSubstring("decay_rate is -1"));
  CHECK_THROWS_WITH(schedules::polynomial_decay({.initial = 1, .decay_steps = -5}), ContainsSubstring("decay_steps is -5"));
  CHECK_THROWS_WITH(schedules::polynomial_decay({.initial = 1, .decay_steps = 5, .power = 0}), ContainsSubstring("power is 0"));
  CHECK_THROWS_WITH(schedules::cosine_decay({.initial = 1}), ContainsSubstring("decay_steps is 0"));
  CHECK_THROWS_WITH(schedules::cosine_restarts({.initial = 1, .first_decay_steps = 5, .t_mul = 0.5}), ContainsSubstring("t_mul is 0.5"));
  CHECK_THROWS_WITH(schedules::cosine_restarts({.initial = 1, .first_decay_steps = 5, .m_mul = -1}), ContainsSubstring("m_mul is -1"));
  CHECK_THROWS_WITH(schedules::warm_up(-1, schedules::constant(1)), ContainsSubstring("steps is -1"));
  CHECK_THROWS_WITH(schedules::one_cycle({.max = 1, .total_steps = 1}), ContainsSubstring("total_steps is 1"));
  CHECK_THROWS_WITH(schedules::one_cycle({.max = 1, .total_steps = 9, .rising = 1}), ContainsSubstring("rising is 1"));
  CHECK_THROWS_WITH(schedules::one_cycle({.max = 1, .total_steps = 9, .div_factor = 0}), ContainsSubstring("div_factor is 0"));
  CHECK_THROWS_WITH(schedules::reduce_on_plateau({.factor = 1}), ContainsSubstring("factor is 1"));
  CHECK_THROWS_WITH(schedules::reduce_on_plateau({.patience = 0}), ContainsSubstring("patience is 0"));
  CHECK_THROWS_WITH(schedules::reduce_on_plateau({.min_delta = -1}), ContainsSubstring("min_delta is -1"));
  CHECK_THROWS_WITH(schedules::reduce_on_plateau({.cooldown = -1}), ContainsSubstring("cooldown is -1"));
  CHECK_THROWS_WITH(schedules::reduce_on_plateau({.min_rate = -1}), ContainsSubstring("min_rate is -1"));
}
