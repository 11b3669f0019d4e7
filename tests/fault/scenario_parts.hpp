// SPDX-License-Identifier: Apache-2.0
//
// The parts of the sessions in a fault sweep.
#pragma once

#include "fault/exhausted_resources.hpp"

#include <stepwell/base/random.hpp>
#include <stepwell/checkpoint/find_checkpoints.hpp>
#include <stepwell/data/queue.hpp>
#include <stepwell/stepwell.hpp>
#include <stepwell/threads/coordinator.hpp>

#include <csignal>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepwell::test {

inline constexpr std::int64_t steps_of_a_session = 7;

/// A model whose snapshots, records and checkpoint blocks are larger than `large_allocation`.
struct large_model {
  struct result {
    float loss;
  };

  std::vector<float> weights = std::vector<float>(5 * large_allocation / 4 / sizeof(float));
  std::int64_t sum = 0;

  result step(const std::int64_t& batch) {
    sum += batch;
    weights[static_cast<std::size_t>(sum) % weights.size()] += 1;
    return {static_cast<float>(sum)};
  }
  variable_list variables() { return stepwell::variables({{"weights", weights}, {"sum", sum}}); }
};

/// The user's allocations, made before any request is refused: the model of all sessions, and a text for event files.
inline large_model the_model;
inline const std::string long_text(9 * large_allocation / 4, 'x');

/// A hook that sends SIGTERM to the process at a multiple of `steps_of_a_session` and waits until the session has
/// noticed it. It also runs a thread of the coordinator.
class sigterm_hook {
public:
  void after_create_session(auto& session, coordinator& threads) {
    signals_ = session.signals();
    threads.start_thread("waiting", [&threads](const std::stop_token& stop) {
      if (!stop.stop_requested()) { threads.wait_for_stop(); }
    });
  }
  void after_run(auto& run, const auto& /*values*/) const {
    if (run.global_step() % steps_of_a_session != 0) { return; }
    std::raise(SIGTERM);
    while (!signals_->stop_requested()) { system_clock()->sleep_for(std::chrono::milliseconds(1)); }
  }

private:
  std::shared_ptr<session_signals> signals_;
};

/// A queue of batches from two producers without end.
struct endless_queue {
  data::fifo_queue<std::int64_t> queue{{.capacity = 4}};

  [[nodiscard]] std::shared_ptr<queue_runner> runner() {
    const auto put = [this](const std::stop_token&) { queue.enqueue(1); };
    return std::make_shared<queue_runner>(queue, std::vector<enqueue_op>{{"one", put}, {"two", put}});
  }
};

/// Returns summaries with a record larger than half of the queue.
inline auto large_summaries() {
  return summaries([](summary::writer& out, const large_model::result& result, const large_model& model, std::int64_t step) {
    out.add_scalar("loss", result.loss, step);
    out.add_histogram("weights", std::span(model.weights).first(100), step);
    if (step % steps_of_a_session == 2) { out.add_text("text", long_text, step); }
  });
}

/// Returns options that save every third step, report metrics, and stop at SIGTERM.
inline training_options options_in(const std::string& directory, endless_queue& batches) {
  training_options options;
  options.checkpoint_dir = directory;
  options.saves.save_steps = 3;
  options.summaries.save_steps = 2;
  options.step_counter.every_n_steps = 3;
  options.saves.saver.max_to_keep = 2;
  options.metrics = {std::make_shared<summary::csv_writer>(directory + "/metrics.csv")};
  options.saves.saver.shards = 2;
  options.queue_runners = {batches.runner()};
  options.stop_on = {SIGTERM};
  return options;
}

/// Throws `std::logic_error` unless the newest checkpoint in `directory` belongs to the last step of a session. Does
/// not read the checkpoint: if the memory for that were refused, an older checkpoint would count as the newest.
inline void check_last_checkpoint(const std::string& directory, std::int64_t step) {
  if (latest_checkpoint(directory) != directory + "/model.ckpt-" + std::to_string(step) || step % steps_of_a_session != 0) {
    throw std::logic_error("the newest checkpoint is not the one of step " + std::to_string(step));
  }
}

}  // namespace stepwell::test
