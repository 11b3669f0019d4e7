// SPDX-License-Identifier: Apache-2.0
//
// This file is compiled with -O2 -ffast-math, like the program of a user. It makes and recognises NaN by bits only.
#include "support/catch.hpp"
#include "support/file_text.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"
#include "unit/hooks/event_reading.hpp"

#include <stepwell/stepwell.hpp>

#include <array>
#include <bit>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#ifndef __FAST_MATH__
#error "this file tests nothing without -ffast-math"
#endif

namespace sw = stepwell;

namespace {

// Numbers that the compiler cannot see.
volatile std::uint64_t nan_bits = 0x7ff8'0000'0000'0000;
volatile std::uint64_t infinity_bits = 0x7ff0'0000'0000'0000;
volatile std::uint32_t short_nan_bits = 0x7fc0'0000;
volatile std::uint32_t short_infinity_bits = 0x7f80'0000;
volatile std::uint64_t tiny_bits = 0x0000'1268'8b70'e62b;  // 1e-310
volatile std::uint32_t short_tiny_bits = 0x0001'16c2;      // 1e-40

double nan_value() { return std::bit_cast<double>(std::uint64_t{nan_bits}); }
float short_nan() { return std::bit_cast<float>(std::uint32_t{short_nan_bits}); }
double infinity() { return std::bit_cast<double>(std::uint64_t{infinity_bits}); }
float short_infinity() { return std::bit_cast<float>(std::uint32_t{short_infinity_bits}); }
double tiny() { return std::bit_cast<double>(std::uint64_t{tiny_bits}); }
float short_tiny() { return std::bit_cast<float>(std::uint32_t{short_tiny_bits}); }

/// Compares bits, because NaN may be equal to every number here.
bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
bool really_nan(double value) { return (std::bit_cast<std::uint64_t>(value) << 1) > 0xffe0'0000'0000'0000; }

/// A model whose step `bad_at` returns `bad`.
template<class Value>
struct echo_model {
  struct result {
    Value value;
    double loss;
    std::optional<double> measured;
  };
  Value good;
  Value bad;
  std::int64_t bad_at = 3;
  std::vector<double> losses = std::vector<double>(10, 1.0);
  double rate = 0.5;
  std::int64_t at = 0;

  result step() {
    const double loss = losses[static_cast<std::size_t>(at)];
    return {++at == bad_at ? bad : good, loss, at % 2 == 0 ? std::optional(loss) : std::nullopt};
  }
  sw::variable_list variables() { return sw::variables({{"at", at}, {"rate", rate}}); }
};
using number_model = echo_model<double>;

sw::training_options quiet() { return {.step_counter = {.every_n_steps = sw::none}}; }

/// Returns the step at which the guard threw, or 0.
template<class Value>
std::int64_t caught_at(Value good, Value bad, sw::nan_tensor_options options = {}) {
  echo_model<Value> model{.good = good, .bad = bad};
  try {
    auto session = sw::monitored_training_session(model, quiet(), sw::stop_at_step(8),
                                                  sw::nan_tensor_hook{options, &echo_model<Value>::result::value});
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  } catch (const sw::nan_loss_error&) { return model.at; }
  return 0;
}

/// Trains with these losses, and returns the model.
template<class... Hooks>
number_model trained(std::vector<double> losses, sw::training_options options, Hooks... hooks) {
  number_model model{.good = 1, .bad = 1, .losses = std::move(losses)};
  auto session = sw::monitored_training_session(model, std::move(options), sw::stop_at_step(static_cast<std::int64_t>(model.losses.size())),
                                                std::move(hooks)...);
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  return model;
}
constexpr auto loss = &number_model::result::loss;

/// A mode of floating-point arithmetic in this thread.
enum class mode { flushing, upward, downward, towards_zero };

class float_mode {
public:
  explicit float_mode(mode wanted) {
    std::fegetenv(&before_);
    switch (wanted) {
#ifdef __SSE2__
      case mode::flushing: _mm_setcsr(_mm_getcsr() | 0x8040U); break;
#else
      case mode::flushing: break;
#endif
      case mode::upward: std::fesetround(FE_UPWARD); break;
      case mode::downward: std::fesetround(FE_DOWNWARD); break;
      case mode::towards_zero: std::fesetround(FE_TOWARDZERO); break;
    }
  }
  float_mode(const float_mode&) = delete;
  ~float_mode() { std::fesetenv(&before_); }

private:
  std::fenv_t before_;
};
constexpr std::array all_modes = {mode::upward, mode::downward, mode::towards_zero, mode::flushing};

}  // namespace

TEST_CASE("a NaN guard in a program with -ffast-math throws after NaN and infinity", "[fast_math][nan]") {
  CHECK(caught_at(1.0, nan_value()) == 3);
  CHECK(caught_at(1.0, infinity()) == 3);
  CHECK(caught_at(1.0F, short_nan()) == 3);
  CHECK(caught_at(1.0F, short_infinity()) == 3);
  CHECK(caught_at(1.0L, static_cast<long double>(nan_value())) == 3);
  CHECK(caught_at(1.0L, static_cast<long double>(infinity())) == 3);
  CHECK(caught_at(std::vector<float>{1}, std::vector<float>{short_nan()}) == 3);
  CHECK(caught_at(std::vector<double>{1, 2, 3}, std::vector<double>{1, nan_value(), 3}) == 3);
  CHECK(caught_at(std::optional(1.0), std::optional(nan_value())) == 3);
  CHECK(caught_at(1.0, nan_value(), {.nan_only = true}) == 3);
  CHECK(caught_at(1.0F, short_nan(), {.nan_only = true}) == 3);
  CHECK(caught_at(1.0, infinity(), {.nan_only = true}) == 0);
  CHECK(caught_at(1.0, 2.0) == 0);
  CHECK(caught_at(1.0L, 1e4900L) == 0);
}

TEST_CASE("a rollback after NaN happens in a program with -ffast-math", "[fast_math][nan]") {
  const sw::test::log_capture log;
  number_model model{.good = 1, .bad = nan_value()};
  auto session = sw::monitored_training_session(model, quiet(), sw::stop_at_step(8),
                                                sw::rollback_on_nan_hook(&number_model::result::value, [&model] { model.bad_at = 0; }));
  for ([[maybe_unused]] const auto& step : session.steps()) {}
  session.close();
  CHECK(session.metrics().rollbacks == 1);
}

TEST_CASE("a plateau rule in a program with -ffast-math leaves the rate alone until it reduces it", "[fast_math][schedules]") {
  const sw::test::log_capture log;
  const auto rate_after = [](std::vector<double> losses) {
    return trained(std::move(losses), quiet(),
                   sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 2}}, &number_model::rate, loss})
        .rate;
  };
  CHECK(same(rate_after({3, 2, 1}), 0.5));
  CHECK(same(rate_after({3, 3, 3}), 0.25));
  CHECK(same(rate_after({3, nan_value(), nan_value()}), 0.25));
}

TEST_CASE("a reduced rate is restored in a program with -ffast-math", "[fast_math][schedules]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  const auto options = [&] {
    auto made = quiet();
    made.checkpoint_dir = directory.path();
    return made;
  };
  const auto hook = [] { return sw::reduce_on_plateau_hook{{.plateau = {.factor = 0.5, .patience = 2}}, &number_model::rate, loss}; };
  CHECK(same(trained({3, 3, 3}, options(), hook()).rate, 0.25));
  CHECK(same(trained({3, 3, 3, 2}, options(), hook()).rate, 0.25));
}

TEST_CASE("NaN is no improvement for the hooks of a program with -ffast-math", "[fast_math][best][early_stopping]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  auto options = quiet();
  options.checkpoint_dir = directory.path();
  const auto model = trained({3, nan_value(), 2, nan_value(), nan_value(), nan_value()}, options, sw::best_checkpoint_hook{loss},
                             sw::early_stopping_hook{{.patience = 2}, loss});
  CHECK(model.at == 5);
  const auto best = sw::best_checkpoint(directory.path());
  REQUIRE(best);
  CHECK(best->step == 3);
  CHECK(same(best->value, 2));
}

TEST_CASE("metrics without a value are NaN in a program with -ffast-math, and a NaN stays", "[fast_math][metrics]") {
  CHECK(really_nan(sw::metrics::mean().value()));
  CHECK(really_nan(sw::metrics::exponential_mean().value()));
  CHECK(really_nan(sw::metrics::min_max().value()));
  CHECK(really_nan(sw::metrics::perplexity().value()));
  CHECK(really_nan(sw::metrics::mean_squared_error().value()));
  sw::metrics::min_max both;
  both.update(1);
  both.update(nan_value());
  CHECK(really_nan(both.value()));
  sw::metrics::mean mean;
  mean.update(nan_value());
  CHECK(really_nan(mean.value()));
}

TEST_CASE("evaluations, progress, log lines and summaries show NaN in a program with -ffast-math", "[fast_math][hooks]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  auto options = quiet();
  options.checkpoint_dir = directory.path();
  options.summaries.save_steps = 1;
  std::string lines;
  const auto tested = sw::evaluate_every(
      3, [](const number_model& model) { return model.losses[static_cast<std::size_t>(model.at - 1)]; },
      sw::measure("mean", [](double value) { return value; }),
      sw::measure("range", sw::metrics::min_max(), [](double value) { return value; }));
  trained({1, 2, nan_value()}, options, tested, sw::log_every(1, sw::tag("loss", loss)),
          sw::progress_hook{{.is_terminal = false, .output = [&](std::string_view text) { lines += text; }}, sw::tag("loss", loss)},
          sw::summaries(sw::summary::scalar("loss", loss)));
  CHECK(log.contains(sw::log_level::info, "mean = nan, range = nan"));
  CHECK(log.contains(sw::log_level::info, "loss = nan"));
  CHECK(lines.find("loss nan") != std::string::npos);
  CHECK(really_nan(sw::test::scalars_in(directory.path(), "loss").at(3)));
}

TEST_CASE("metric files show NaN in a program with -ffast-math", "[fast_math][summary]") {
  const sw::test::temporary_directory directory;
  {
    sw::summary::csv_writer csv(directory / "metrics.csv");
    csv.add_scalar("a", nan_value(), 1);
    csv.add_scalar("b", -short_nan(), 1);
    csv.add_scalar("c", short_infinity(), 1);
  }
  const auto text = sw::test::file_text(directory / "metrics.csv");
  CHECK(text.find(",1,a,nan\n") != std::string::npos);
  CHECK(text.find(",1,b,nan\n") != std::string::npos);
  CHECK(text.find(",1,c,inf\n") != std::string::npos);
}

TEST_CASE("the text of a number does not depend on the mode of the thread", "[fast_math][mode]") {
  const std::vector<std::uint16_t> half = {0x0001, 0x83ff};
  for (const auto mode : all_modes) {
    CAPTURE(static_cast<int>(mode));
    const float_mode set(mode);
    CHECK(sw::value_text(tiny()) == "1e-310");
    CHECK(sw::value_text(short_tiny()) == "9.99995e-41");
    CHECK(sw::value_text(-short_tiny()) == "-9.99995e-41");
    CHECK(sw::value_text(0.1F) == "0.1");
    CHECK(sw::value_text(2.0 / 3) == "0.666667");
    CHECK(sw::value_text(std::vector<float>{short_tiny(), 1}) == "[9.99995e-41 1]");
    CHECK(sw::value_text(sw::tensor_view{sw::dtype::half, sw::tensor_shape{2}, std::as_bytes(std::span(half))}) ==
          "[0.0000000596 -0.0000609756]");
  }
}

TEST_CASE("metric files, event files and histograms do not depend on the mode of the thread", "[fast_math][mode]") {
  const sw::test::log_capture log;
  for (const auto mode : all_modes) {
    CAPTURE(static_cast<int>(mode));
    const sw::test::temporary_directory directory;
    {
      const float_mode set(mode);
      sw::summary::csv_writer csv(directory / "metrics.csv");
      csv.add_scalar("a", tiny(), 1);
      csv.add_scalar("b", short_tiny(), 1);
      csv.add_scalar("c", 0.1, 1);
      sw::summary::writer events(directory.path());
      events.add_scalar("a", static_cast<double>(0x1p-133), 1);
      events.add_scalar("b", short_tiny(), 1);
      events.add_scalar("c", 0.1, 1);
      events.add_histogram("d", std::vector<float>{short_tiny(), 1}, 1);
      events.add_histogram("e", std::vector<double>{0.1, 0.2, 0.3}, 1);
    }
    const auto text = sw::test::file_text(directory / "metrics.csv");
    CHECK(text.find(",1,a,1e-310\n") != std::string::npos);
    CHECK(text.find(",1,b,1e-40\n") != std::string::npos);
    CHECK(text.find(",1,c,0.1\n") != std::string::npos);
    const auto bits_of = [&](const char* tag) { return std::bit_cast<std::uint32_t>(sw::test::scalars_in(directory.path(), tag).at(1)); };
    CHECK(bits_of("a") == 0x0001'0000);
    CHECK(bits_of("b") == short_tiny_bits);
    CHECK(bits_of("c") == std::bit_cast<std::uint32_t>(0.1F));
    const auto histogram_of = [&](const char* tag) {
      return std::get<sw::format::histogram_value>(sw::test::tagged_in(directory.path(), tag).at(0).second.value);
    };
    CHECK(same(histogram_of("d").min, 0x116c2p-149));
    CHECK(same(histogram_of("e").sum, 0x1.3333333333334p-1));
    const auto limits = sw::kernel::histogram_limits();
    volatile double limit = 1e-12;
    for (int i = 0; i < 300; ++i) { limit = limit * 1.1; }
    CHECK(same(limits[limits.size() / 2 + 301], limit));
  }
}

TEST_CASE("hooks see a denormal value as it is in a thread that flushes", "[fast_math][mode]") {
  const sw::test::log_capture log;
  const sw::test::temporary_directory directory;
  auto options = quiet();
  options.checkpoint_dir = directory.path();
  {
    const float_mode set(mode::flushing);
    echo_model<float> model{.good = short_tiny(), .bad = 1};
    auto session =
        sw::monitored_training_session(model, options, sw::stop_at_step(2), sw::best_checkpoint_hook{&echo_model<float>::result::value},
                                       sw::log_every(1, sw::tag("value", &echo_model<float>::result::value)));
    for ([[maybe_unused]] const auto& step : session.steps()) {}
    session.close();
  }
  CHECK(log.contains(sw::log_level::info, "value = 9.99995e-41"));
  CHECK(same(sw::best_checkpoint(directory.path())->value, 0x116c2p-149));
}
