// SPDX-License-Identifier: Apache-2.0
#include "train.hpp"

#include <stepwell/async.hpp>

#include <chrono>
#include <csignal>
#include <memory>
#include <stop_token>
#include <utility>

namespace async_server {
namespace {

namespace asio = boost::asio;
namespace sw = stepwell;
using std::chrono::steady_clock;

/// The pace of the snapshots: the time of the next one, and the step rate since the last one.
class pace {
public:
  explicit pace(std::int64_t step) : step_(step) {}
  [[nodiscard]] bool is_due() const { return steady_clock::now() - since_ >= std::chrono::milliseconds(200); }
  [[nodiscard]] double steps_per_second(std::int64_t step) {
    const auto now = steady_clock::now();
    const std::chrono::duration<double> seconds = now - std::exchange(since_, now);
    return static_cast<double>(step - std::exchange(step_, step)) / seconds.count();
  }

private:
  std::int64_t step_;
  steady_clock::time_point since_ = steady_clock::now();
};

void publish(sw::snapshot taken, board& news) {
  auto fresh = std::make_shared<predictor>();
  sw::restore(fresh->model, taken);
  fresh->taken = std::make_shared<const sw::snapshot>(std::move(taken));
  news.latest = std::move(fresh);
}

}  // namespace

asio::awaitable<void> train(const options& wanted, asio::any_io_executor compute, board& news) {
  curve model;
  const auto points = noisy_points(1, 10'000);
  auto batches = sw::data::shuffled_batches(points, {.batch_size = 64, .seed = 1});

  // A stop by `request_stop` of the session would end the next start, too.
  std::stop_source stopping;
  sw::training_options how{.checkpoint_dir = wanted.run_dir,
                           .saves = {.save_secs = 30},
                           .step_counter = {.every_n_steps = 10'000},
                           .stop_token = stopping.get_token(),
                           .stop_on = {SIGINT, SIGTERM}};
  sw::stop_at_step_hook end{{.last_step = wanted.steps}};
  auto session = sw::monitored_training_session(sw::defer_start(sw::async_options().steps_on(compute)), model, how, end);
  co_await session.async_start();
  news.started_from = news.step = session.global_step();
  const offer stop(news.stop_training, [&stopping] { stopping.request_stop(); });

  // Three buffers: one for predictions, one for the examination, one for the next snapshot. No other snapshot memory is
  // needed.
  sw::snapshot_pool memory(sw::snapshot_size(model.variables()), 3);
  publish(co_await session.async_snapshot(memory), news);
  pace now(news.step);
  for (;;) {
    const auto step = co_await session.async_next(batches);
    if (!step) { break; }
    news.step = step->global_step;
    news.loss = step->value.loss;
    if (now.is_due()) {
      news.steps_per_second = now.steps_per_second(news.step);
      publish(co_await session.async_snapshot(memory), news);
    }
  }
  co_await session.async_close();  // the last checkpoint
  news.is_trained = true;
  news.when_trained();
}

}  // namespace async_server
