// SPDX-License-Identifier: Apache-2.0
#include "fault/scenario_parts.hpp"
#include "fault/scenarios.hpp"

#include <stepwell/async.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>
#include <optional>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning of g++ 12 about the frames of Asio

namespace stepwell::test {
namespace {

namespace asio = boost::asio;

/// The user's executor, created before any request is refused.
asio::thread_pool compute(1);

asio::awaitable<void> train(const training_options& options, endless_queue& batches, std::optional<session_release>& released) {
  auto how = defer_start(async_options().steps_on(compute.get_executor()));
  auto session = monitored_training_session(how, the_model, options, large_summaries(), sigterm_hook{});
  released = session.release_handle();
  std::int64_t last = 0;
  auto body = [&batches, &last](auto& started) -> asio::awaitable<void> {
    co_await started.async_start();
    static_cast<void>(co_await started.async_next(batches.queue));
    static_cast<void>(co_await started.async_checkpoint_now());
    auto taken = co_await started.async_snapshot();
    auto measure = [](const snapshot& at) { return static_cast<double>(at.step()); };
    static_cast<void>(co_await async_evaluate(std::move(taken), measure));
    for (;;) {
      const auto step = co_await started.async_next(batches.queue);
      if (!step) { break; }
      last = step->global_step;
    }
  };
  co_await async_with(session, body);
  check_last_checkpoint(options.checkpoint_dir, last);
}

/// A session whose start failed may release its directory and its metric files only after the session has been
/// destroyed.
asio::awaitable<void> train_until_released(std::string directory) {
  endless_queue batches;
  const auto options = options_in(directory, batches);
  std::optional<session_release> released;
  std::exception_ptr failure;
  try {
    co_await train(options, batches, released);
  } catch (...) { failure = std::current_exception(); }
  if (released) { co_await released->async_wait(); }
  try {
    for (const auto& metrics : options.metrics) { metrics->close(); }
  } catch (...) { failure = failure ? failure : std::current_exception(); }
  if (failure) { std::rethrow_exception(failure); }
}

void run_to_the_end(const std::string& directory) {
  asio::io_context loop;
  std::exception_ptr failure;
  asio::co_spawn(loop, train_until_released(directory), [&](const std::exception_ptr& how) { failure = how; });
  loop.run();
  if (failure) { std::rethrow_exception(failure); }
}

}  // namespace

void awaited_sessions(const std::string& directory) {
  run_to_the_end(directory);
  run_to_the_end(directory);
}

}  // namespace stepwell::test
