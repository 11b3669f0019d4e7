// SPDX-License-Identifier: Apache-2.0
#include "examine.hpp"

#include <stepwell/async.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>

namespace async_server {

namespace asio = boost::asio;
namespace sw = stepwell;

asio::awaitable<void> examine(const options& wanted, board& news) {
  const auto points = noisy_points(2, 1'000);
  curve model;  // a separate model, because the other one is being trained
  const auto error_of = [&points](const curve& seen) { return sw::summary::metric_list{{"test/error", seen.error(points)}}; };

  asio::steady_timer pause(co_await asio::this_coro::executor);
  const offer end_pause(news.when_trained, [&pause] { pause.cancel(); });
  std::int64_t examined_step = -1;
  while (!news.is_trained) {
    pause.expires_after(std::chrono::seconds(1));
    static_cast<void>(co_await pause.async_wait(asio::as_tuple(asio::use_awaitable)));
    if (news.is_trained || !news.latest || news.latest->taken->step() == examined_step) { continue; }
    const auto taken = news.latest->taken;
    const auto events = sw::summary::writer::shared(wanted.run_dir);  // the event writer of the session
    const auto found = co_await sw::async_evaluate(taken, model, error_of, sw::async_evaluate_options().writes_to(events));
    examined_step = taken->step();
    news.on_test_points = {examined_step, found.front().second};
  }
}

}  // namespace async_server
