// SPDX-License-Identifier: Apache-2.0
//
// Commands of the tool in a directory of 20,000 checkpoints, compared with one of 2,000. `ratio` is the time for one checkpoint in the large
// directory, divided by that in the small one: it should stay near 1.
#include "bench/paired.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/checkpoint/saver.hpp>
#include <tool/command_line.hpp>

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace sw = stepwell;
using sw::bench::run_pairs;
using sw::bench::seconds_of;

namespace {

constexpr int few = 2'000;
constexpr int many = 20'000;

/// A directory with `count` checkpoints. All of them are links to the files of one checkpoint.
class full_directory {
public:
  explicit full_directory(int count) {
    std::vector<float> weights(4);
    const auto list = sw::variables({{"weights", weights}});
    {
      sw::snapshot_pool pool(sw::snapshot_size(list), 1);
      sw::saver saver(path(), {.sync = false});
      saver.save_and_wait(sw::snapshot::capture(pool.acquire(), list, 1));
    }
    std::ofstream state(directory_ / "checkpoint");
    state << "model_checkpoint_path: \"model.ckpt-" << count << "\"\n";
    for (int step = 1; step <= count; ++step) {
      state << "all_model_checkpoint_paths: \"model.ckpt-" << step << "\"\n";
      for (const std::string end : {".index", ".data-00000-of-00001"}) {
        if (step == 1) { continue; }
        std::filesystem::create_hard_link(directory_ / ("model.ckpt-1" + end), directory_ / ("model.ckpt-" + std::to_string(step) + end));
      }
    }
  }
  [[nodiscard]] const std::string& path() const noexcept { return directory_.path(); }

private:
  sw::test::temporary_directory directory_;
};

/// Returns the time of a command in a directory.
double run(const full_directory& in, std::vector<std::string> words) {
  words.insert(words.begin() + 1, in.path());
  std::ostringstream out;
  sw::tool::console to{.out = out, .err = out};
  return seconds_of([&] {
    if (sw::tool::run(words, to) != sw::tool::exit_code::good) { std::abort(); }
  });
}

void compare(benchmark::State& state, const std::vector<std::string>& words) {
  const full_directory large(many);
  const full_directory small(few);
  const auto times = run_pairs(state, "small", [&] { return run(large, words); }, [&] { return run(small, words); });
  state.counters["ratio"] = times.ours / times.theirs * few / many;
}

void stats_of_many_checkpoints(benchmark::State& state) { compare(state, {"stats"}); }
BENCHMARK(stats_of_many_checkpoints)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

void prune_of_many_checkpoints(benchmark::State& state) { compare(state, {"prune", "--dry-run"}); }
BENCHMARK(prune_of_many_checkpoints)->Iterations(5)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Deletes all checkpoints except five.
void deletion_of_many_checkpoints(benchmark::State& state) { compare(state, {"prune", "--yes"}); }
BENCHMARK(deletion_of_many_checkpoints)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
