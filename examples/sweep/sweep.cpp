// SPDX-License-Identifier: Apache-2.0
//
// A sweep: 200 short runs on a pool of threads, each with other hyper-parameters, and a table of the best ones. Each run has its own
// directory with checkpoints and summaries. A sweep that was killed and is started again continues the runs that were interrupted.
//
//     sweep [DIRECTORY [KILL_AFTER]]     KILL_AFTER, for the test: the process kills itself after that many runs.
#include <stepwell/stepwell.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace asio = boost::asio;

constexpr std::int64_t last_step = 300;

struct hyper_parameters {
  double rate, momentum;
  std::uint64_t batch_size, seed;
};
struct sample {
  double x, y;
};
struct row {
  hyper_parameters with;
  double error;
};

/// Fits y = sin(3 x) with a polynomial.
struct polynomial {
  struct result {
    double loss;
  };
  hyper_parameters with;
  std::array<double, 6> weights{}, velocity{};

  double predict(double x) const {
    double sum = 0;
    for (std::size_t i = weights.size(); i-- > 0;) { sum = sum * x + weights[i]; }
    return sum;
  }
  result step(const std::vector<sample>& batch) {
    std::array<double, 6> gradient{};
    double squares = 0;
    const auto count = static_cast<double>(batch.size());
    for (const auto& [x, y] : batch) {
      const double error = predict(x) - y;
      squares += error * error / count;
      for (std::size_t i = 0; i < gradient.size(); ++i) { gradient[i] += error * std::pow(x, i) / count; }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      velocity[i] = with.momentum * velocity[i] - with.rate * gradient[i];
      weights[i] += velocity[i];
    }
    return {squares};
  }
  auto variables() { return sw::variables({{"weights", weights}, {"velocity", velocity}}); }
};

std::vector<sample> samples(double first, int count) {
  std::vector<sample> all;
  for (int i = 0; i < count; ++i) { all.push_back({first + 2.0 * i / count, std::sin(3 * (first + 2.0 * i / count))}); }
  return all;
}

double test_error(const polynomial& model) {
  sw::metrics::mean_squared_error error;
  for (const auto& [x, y] : samples(-0.99, 50)) { error.update(model.predict(x), y); }
  return error.value();
}

/// Returns the error after the last step, infinity if the run has diverged. A run that has finished is only restored, and one that has
/// diverged is not repeated.
double error_of_run(const std::string& directory, const hyper_parameters& with) {
  polynomial model{.with = with};
  if (const auto ended = sw::run_ended(directory)) {
    if (ended->how == sw::session_ending::failed) { return std::numeric_limits<double>::infinity(); }
    if (ended->how == sw::session_ending::finished) {
      sw::restore(model.variables(), sw::checkpoint_reader(*sw::latest_checkpoint(directory)));
      return test_error(model);
    }
  }
  auto batches = sw::data::shuffled_batches(samples(-1, 200), {.batch_size = with.batch_size, .seed = with.seed});
  auto session = sw::monitored_training_session(
      model,
      {.checkpoint_dir = directory,
       .saves = {.save_steps = 100, .saver = {.max_to_keep = 1, .sync = false}},
       .summaries = {.hparams = {{{"rate", with.rate}, {"momentum", with.momentum}, {"batch_size", with.batch_size}, {"seed", with.seed}}}},
       .step_counter = {.every_n_steps = sw::none}},  // a killed process loses nothing; a power failure loses short runs only
      sw::stop_at_step(last_step), sw::nan_tensor_hook{{.fail_on_nan_loss = false}, &polynomial::result::loss},
      sw::summarize_every(50, directory, sw::summary::scalar("loss", &polynomial::result::loss),
                          sw::summary::scalar("test/error", test_error)));
  session.run_all(batches);
  session.close();
  return session.stop_reason().cause == sw::stop_cause::nan ? std::numeric_limits<double>::infinity() : test_error(model);
}

hyper_parameters choice(std::uint64_t run) {
  constexpr std::array rates{0.1, 0.3, 1.0, 3.0, 10.0};
  constexpr std::array momenta{0.0, 0.5, 0.9, 0.99};
  return {rates[run / 40], momenta[run / 10 % 4], run / 5 % 2 == 0 ? 8U : 32U, run % 5 + 1};
}

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "sweep-run";
  const int kill_after = argc > 2 ? std::atoi(argv[2]) : 0;
  sw::set_log_level(sw::log_level::error);  // a run that diverges is not worth a warning here

  asio::thread_pool pool;
  std::atomic<int> ended = 0;
  std::vector<std::future<row>> runs;
  for (std::uint64_t run = 0; run < 200; ++run) {
    runs.push_back(asio::post(pool, asio::use_future([&ended, &directory, kill_after, run] {
                                const row made{choice(run), error_of_run(directory + "/" + std::to_string(run), choice(run))};
                                if (++ended == kill_after) { std::raise(SIGKILL); }
                                return made;
                              })));
  }
  std::vector<row> table;
  for (auto& run : runs) { table.push_back(run.get()); }  // throws the exception of the run
  std::ranges::sort(table, {}, &row::error);
  std::printf("%zu runs, %d of them diverged; the best:\n  rate  momentum  batch  seed  test error\n", table.size(),
              static_cast<int>(std::ranges::count_if(table, [](const row& one) { return std::isinf(one.error); })));
  table.resize(10);
  for (const auto& [with, error] : table) {
    std::printf("%6.2f  %8.2f  %5d  %4d  %10.6f\n", with.rate, with.momentum, static_cast<int>(with.batch_size),
                static_cast<int>(with.seed), error);
  }
}
