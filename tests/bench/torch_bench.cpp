// SPDX-License-Identifier: Apache-2.0
//
// The cost that a monitored session adds to a LibTorch training step: the example's network on one thread, with the
// hooks of a usual run and checkpoints every 10 s, compared with the bare loop over the same batches, in alternating
// steps.
//
// The benchmark measures the processor time of all threads of the process. A step takes milliseconds, and other
// processes do not count.
#include "bench/paired.hpp"
#include "convnet.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/data/shuffled_batches.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/hooks/summary_saver_hook.hpp>
#include <stepwell/training/monitored_training_session.hpp>

#include <benchmark/benchmark.h>

#include <ctime>
#include <functional>

namespace {

namespace sw = stepwell;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double processor_seconds_of(const std::function<void()>& action) {
  const double start = processor_seconds();
  action();
  return processor_seconds() - start;
}

void monitored_convnet_against_bare_loop(benchmark::State& state) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const convnet::drawings to_learn(1, 2000);
  const sw::test::temporary_directory directory;
  convnet::trainee watched, bare;
  auto batches = sw::data::shuffled_batches(to_learn, {.batch_size = 32, .seed = 3});
  auto same_batches = sw::data::shuffled_batches(to_learn, {.batch_size = 32, .seed = 3});

  auto session =
      sw::monitored_training_session(watched, {.checkpoint_dir = directory.path(), .saves = {.save_secs = 10}},
                                     sw::stop_at_step_hook{{.last_step = 1'000'000}}, sw::nan_tensor_hook{&convnet::trainee::result::loss},
                                     sw::summary_saver_hook{{.output_dir = directory.path(), .save_steps = 100},
                                                            sw::summary::scalar("loss", &convnet::trainee::result::loss)});
  auto all = session.steps(batches);
  auto next = all.begin();  // the first step, including all one-time work
  bare.step(*same_batches.peek());
  same_batches.advance();

  const auto times = sw::bench::run_pairs(
      state, "bare", [&] { return processor_seconds_of([&] { ++next; }); },
      [&] {
        return processor_seconds_of([&] {
          benchmark::DoNotOptimize(bare.step(*same_batches.peek()));
          same_batches.advance();
        });
      });
  state.counters["ratio"] = times.ours / times.theirs;
  state.counters["over_us"] = (times.ours - times.theirs) * 1e6;
}
BENCHMARK(monitored_convnet_against_bare_loop)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1001);

}  // namespace
