// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/base/cadence.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace sw = stepwell;
using namespace std::chrono_literals;

namespace {
struct options {
  sw::setting<sw::seconds_value> secs = {};
  sw::setting<std::int64_t> steps = {};
};
static_assert(!std::is_convertible_v<const char*, sw::setting<std::int64_t>>);
}  // namespace

TEST_CASE("a setting that was not given is the default and has no value", "[base][setting]") {
  const options given;
  CHECK(given.secs.is_default());
  CHECK_FALSE(given.secs.enabled());
}

TEST_CASE("none is given, and switches off", "[base][setting]") {
  const options given{.secs = sw::none, .steps = sw::none};
  CHECK_FALSE(given.secs.is_default());
  CHECK_FALSE(given.steps.is_default());
  CHECK_FALSE(given.secs.enabled());
  CHECK_FALSE(given.steps.enabled());
}

TEST_CASE("zero, negative numbers and NaN are given, and switch off", "[base][setting]") {
  for (const double seconds : {0.0, -0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const options given{.secs = seconds, .steps = -3};
    CHECK_FALSE(given.secs.is_default());
    CHECK_FALSE(given.secs.enabled());
    CHECK_FALSE(given.steps.is_default());
    CHECK_FALSE(given.steps.enabled());
    CHECK(given.steps.given() == -3);
  }
  CHECK_FALSE(options{.steps = 0}.steps.enabled());
}

TEST_CASE("seconds are given as a number or as a duration", "[base][setting]") {
  CHECK(options{.secs = 30}.secs.enabled()->count() == 30.0);
  CHECK(options{.secs = 0.5}.secs.enabled()->count() == 0.5);
  CHECK(options{.secs = 250ms}.secs.enabled()->count() == 0.25);
  CHECK(options{.secs = 2min}.secs.enabled()->duration() == 120s);
  CHECK(options{.steps = 500}.steps.enabled() == 500);
}

TEST_CASE("settings can be copied and set anew", "[base][setting]") {
  options given{.steps = 5};
  const options copy = given;
  given.steps = sw::none;
  CHECK(copy.steps.enabled() == 5);
  CHECK_FALSE(given.steps.enabled());
  given.steps = {};
  CHECK(given.steps.is_default());
}
