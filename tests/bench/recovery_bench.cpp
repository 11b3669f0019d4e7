// SPDX-License-Identifier: Apache-2.0
//
// Many recoveries in a row, one for each step. The last tenth should cost the same as the first tenth.
#include "bench/paired.hpp"
#include "support/failing_model.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/base/log.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace {

namespace sw = stepwell;

/// Makes the model fail before every step. Returns the time of each step, including its recovery.
template<class Session>
std::vector<double> times_of(Session& session, sw::test::failing_model& model, std::size_t recoveries) {
  sw::test::recovering_source source;
  std::vector<double> seconds;
  auto start = std::chrono::steady_clock::now();
  for ([[maybe_unused]] const auto& step : session.steps(source)) {
    const auto now = std::chrono::steady_clock::now();
    seconds.push_back(std::chrono::duration<double>(now - start).count());
    if (seconds.size() > recoveries) { break; }
    model.fails_next = true;
    start = std::chrono::steady_clock::now();
  }
  return seconds;
}

void report(benchmark::State& state, const std::vector<double>& seconds) {
  const auto tenth = static_cast<std::ptrdiff_t>(seconds.size() / 10);
  const std::vector<double> first(seconds.begin() + 1, seconds.begin() + 1 + tenth);
  const std::vector<double> last(seconds.end() - tenth, seconds.end());
  state.counters["first_" + std::to_string(tenth) + "_us"] = sw::bench::median(first) * 1e6;
  state.counters["last_" + std::to_string(tenth) + "_us"] = sw::bench::median(last) * 1e6;
  state.counters["last_to_first"] = sw::bench::median(last) / sw::bench::median(first);
}

void recoveries_of_a_session(benchmark::State& state) {
  for (auto _ : state) {
    sw::test::failing_model model;
    sw::monitored_session session(sw::training_options{.retry = {.initial_backoff = 0}}, sw::test::keeping_creator{&model});
    report(state, times_of(session, model, 10'000));
    session.close();
  }
}
BENCHMARK(recoveries_of_a_session)->Iterations(1)->Unit(benchmark::kMillisecond);

/// Measures recoveries from the checkpoint of the previous step, including the wait for its save. The files are not
/// synced, so that the disk does not affect the result.
void recoveries_from_checkpoints(benchmark::State& state) {
  for (auto _ : state) {
    const sw::test::temporary_directory directory;
    sw::test::failing_model model;
    sw::training_options options{.checkpoint_dir = directory.path(),
                                 .saves = {.save_steps = 1},
                                 .summaries = {.save_steps = sw::none},
                                 .step_counter = {.every_n_steps = sw::none}};
    options.saves.saver.sync = false;
    options.retry.initial_backoff = 0;
    auto session = sw::monitored_training_session(model, options);
    report(state, times_of(session, model, 1'000));
    session.close();
  }
}
BENCHMARK(recoveries_from_checkpoints)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  stepwell::set_log_level(stepwell::log_level::error);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
