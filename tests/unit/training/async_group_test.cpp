// SPDX-License-Identifier: Apache-2.0
//
// Awaited sessions of a group, whose processes are threads of this one.
#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/thread_group.hpp"

#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/training/async_training_session.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning of g++ 12 about the frames of Asio

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// Adds the number of processes in each step.
struct process_counter {
  struct result {
    double total;
  };

  explicit process_counter(std::shared_ptr<sw::group> with) : group(std::move(with)) {}

  result step() {
    thread = std::this_thread::get_id();
    double one = 1;
    group->sum(one);
    return {total += one};
  }
  [[nodiscard]] sw::variable_list variables() { return sw::variables({{"total", total}}); }

  std::shared_ptr<sw::group> group;
  double total = 0;
  std::thread::id thread;
};

/// Trains until the session stops, or until `last_step`, after which the coroutine throws.
asio::awaitable<void> train(process_counter& model, std::int64_t last_step, std::int64_t fails_after) {
  sw::training_options options{.max_wait_secs = 20, .retry = {.initial_backoff = 0}, .group = model.group};
  auto session = sw::monitored_training_session(sw::defer_start, model, options, sw::stop_at_step(last_step));
  co_await session.async_start();
  sw::no_data source;
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
    if (step->global_step == fails_after) { throw std::runtime_error("the server ends"); }
  }
  co_await session.async_close();
}

/// Runs `train` on an event loop of this thread.
void run_here(process_counter& model, std::int64_t last_step, std::int64_t fails_after = 0) {
  asio::io_context context;
  std::exception_ptr failure;
  asio::co_spawn(context, train(model, last_step, fails_after), [&](std::exception_ptr ended) { failure = std::move(ended); });
  context.run();
  if (failure) { std::rethrow_exception(failure); }
}

}  // namespace

TEST_CASE("awaited sessions of a group run their steps on a thread of the library", "[group]") {
  thread_job job(2);
  std::mutex mutex;
  const auto failures = job.run([&](const std::shared_ptr<sw::group>& group) {
    process_counter model(group);
    run_here(model, 10);
    const std::lock_guard lock(mutex);
    CHECK(model.total == 20);
    CHECK(model.thread != std::this_thread::get_id());
  });
  for (const auto& failure : failures) { CHECK(failure == nullptr); }
}

TEST_CASE("an awaited session that is destroyed leaves its group, and the others recover with its replacement", "[group]") {
  thread_job job(2);
  std::mutex mutex;
  const auto failures = job.run([&](const std::shared_ptr<sw::group>& group) {
    const int rank = group->rank();
    process_counter model(group);
    if (rank == 1) {
      CHECK_THROWS_WITH(run_here(model, 10, 4), "the server ends");
      process_counter next(job.join(rank));
      run_here(next, 10);
      const std::lock_guard lock(mutex);
      CHECK(next.total == 20);
    } else {
      run_here(model, 10);
      const std::lock_guard lock(mutex);
      CHECK(model.total == 20);
    }
  });
  for (const auto& failure : failures) { CHECK(failure == nullptr); }
}
