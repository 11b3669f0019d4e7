// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <adam.hpp>

#include <array>
#include <cmath>
#include <cstddef>

namespace {

/// Adam for one number as in the paper, with the bias correction included in the rate.
struct adam_twin {
  double value, first = 0, second = 0;

  void update(double gradient, int step) {
    first = 0.9 * first + 0.1 * gradient;
    second = 0.999 * second + 0.001 * gradient * gradient;
    const double rate = 1e-3 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    value -= rate * first / (std::sqrt(second) + 1e-8);
  }
};

}  // namespace

TEST_CASE("Adam moves each number as its scalar twin does", "[digits][adam]") {
  digits::adam optimizer;
  std::array<float, 5> values{1.0F, -2.0F, 0.5F, 0.0F, 100.0F};
  std::array<float, 5> first{}, second{};
  std::array<adam_twin, 5> twins{{{1.0}, {-2.0}, {0.5}, {0.0}, {100.0}}};
  for (int step = 1; step <= 50; ++step) {
    std::array<float, 5> gradient{};
    for (std::size_t i = 0; i < 5; ++i) {
      gradient[i] = static_cast<float>(i + 1) * 0.01F * static_cast<float>(step % 7 - 3);
      twins[i].update(static_cast<double>(gradient[i]), step);
    }
    optimizer.update(values, gradient, first, second);
    optimizer.next_step();
  }
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(values[i] == Approx(twins[i].value).epsilon(1e-5).margin(1e-7));
    CHECK(first[i] == Approx(twins[i].first).epsilon(1e-4).margin(1e-9));
    CHECK(second[i] == Approx(twins[i].second).epsilon(1e-4).margin(1e-12));
  }
  CHECK(optimizer.beta1_power == Approx(std::pow(0.9, 51)));
  CHECK(optimizer.beta2_power == Approx(std::pow(0.999, 51)));
}

TEST_CASE("moments of a weight that is no longer used become zero, not ever smaller", "[digits][adam]") {
  digits::adam optimizer;
  std::array<float, 1> value{1}, first{1e-29F}, second{1e-29F};
  const std::array<float, 1> gradient{};
  for (int step = 0; step < 100'000; ++step) { optimizer.update(value, gradient, first, second); }
  CHECK(first[0] == 0.0F);
  CHECK(second[0] == 0.0F);
}
