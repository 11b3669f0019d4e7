// SPDX-License-Identifier: Apache-2.0
#include "fault/scenario_parts.hpp"
#include "fault/scenarios.hpp"

#include <stepwell/async.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // g++ 12 does not see that those of Asio's frames belong together

namespace stepwell::test {
namespace {

namespace asio = boost::asio;

/// An executor of the user's, made before anything is refused.
asio::thread_pool compute(1);

template<class Session>
asio::awaitable<void> train(Session& session, endless_queue& batches, std::string directory) {
  co_await session.async_start();
  static_cast<void>(co_await session.async_next(batches.queue));
  static_cast<void>(co_await session.async_checkpoint_now());
  auto taken = co_await session.async_snapshot();
  auto measure = [](const snapshot& at) { return static_cast<double>(at.step()); };
  static_cast<void>(co_await async_evaluate(std::move(taken), measure));
  std::int64_t last = 0;
  for (;;) {
    const auto step = co_await session.async_next(batches.queue);
    if (!step) { break; }
    last = step->global_step;
  }
  co_await session.async_close();
  check_last_checkpoint(directory, last);
}

/// Closes the session after an error too: one that is abandoned would keep its directory until the save under way has ended.
asio::awaitable<void> train_and_close(std::string directory) {
  endless_queue batches;
  const auto options = options_in(directory, batches);
  auto how = defer_start(async_options().steps_on(compute.get_executor()));
  auto session = monitored_training_session(how, the_model, options, sigterm_hook{});
  std::exception_ptr failure;
  try {
    co_await train(session, batches, directory);
  } catch (...) { failure = std::current_exception(); }
  try {
    co_await session.async_close();
  } catch (...) { failure = failure ? failure : std::current_exception(); }
  if (failure) { std::rethrow_exception(failure); }
}

void run_to_the_end(const std::string& directory) {
  asio::io_context loop;
  std::exception_ptr failure;
  asio::co_spawn(loop, train_and_close(directory), [&](const std::exception_ptr& how) { failure = how; });
  loop.run();
  if (failure) { std::rethrow_exception(failure); }
}

}  // namespace

void awaited_sessions(const std::string& directory) {
  run_to_the_end(directory);
  run_to_the_end(directory);
}

}  // namespace stepwell::test
