// SPDX-License-Identifier: Apache-2.0
//
// A loop that works with every session and every source that the session can step over. The concepts state its
// requirements.
#include <stepwell/data/source.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/session/training_session.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace sw = stepwell;

/// Runs the session over the source until the data ends or the session stops. Closes the session, prints the number of
/// steps, and returns the reason of the stop.
template<sw::training_session Session, class Source>
  requires sw::steps_from<Session, Source>
sw::stop_reason fit(Session& session, Source& source) {
  std::int64_t done = 0;
  for ([[maybe_unused]] const auto& step : session.steps(source)) { ++done; }
  session.close();
  std::printf("%lld steps, then %s\n", static_cast<long long>(done), std::string(sw::to_string(session.stop_reason().cause)).c_str());
  return session.stop_reason();
}

/// The mean of the batches.
struct mean {
  double value = 0;
  std::int64_t count = 0;

  void step(double number) { value += (number - value) / static_cast<double>(++count); }
  auto variables() { return sw::variables({{"value", value}, {"count", count}}); }
};

/// The square root of a number by Newton's method, one iteration a batch.
struct root {
  double guess = 1;

  struct result {
    double error;
  };
  result step(double square) {
    guess = (guess + square / guess) / 2;
    return {guess * guess - square};
  }
  auto variables() { return sw::variables({{"guess", guess}}); }
};

int main() {
  mean average;
  auto first = sw::monitored_training_session(average);
  auto numbers = sw::data::source(std::vector{1.0, 2.0, 3.0, 6.0});
  const auto why = fit(first, numbers);

  root two;
  auto second = sw::monitored_training_session(two, {}, sw::nan_tensor_hook{&root::result::error});
  auto twos = sw::data::source(std::vector<double>(6, 2.0));
  fit(second, twos);

  std::printf("the mean is %.1f, the root of two %.12f\n", average.value, two.guess);
  return average.value == 3.0 && why.cause == sw::stop_cause::end_of_data ? 0 : 1;
}
