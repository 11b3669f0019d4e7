// SPDX-License-Identifier: Apache-2.0
//
// Trains in the background and answers predictions from the newest snapshot over HTTP:
//
//   curl localhost:PORT/status
//   curl -d '{"x": [0.5, 1]}' localhost:PORT/predict
//   curl -X POST -H "Authorization: Bearer TOKEN" localhost:PORT/stop
//
// /stop or Ctrl-C ends the training with a last checkpoint. The next start continues from it.
#include "board.hpp"
#include "examine.hpp"
#include "options.hpp"
#include "routes.hpp"
#include "train.hpp"

#include <stepwell/board/http_server.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstdio>
#include <exception>

namespace asio = boost::asio;
namespace sb = stepwell::board;
using namespace async_server;

namespace {

/// Trains and examines concurrently. If one of them fails, the other one is cancelled.
asio::awaitable<void> train_and_examine(const options& wanted, asio::any_io_executor compute, board& news) {
  using namespace asio::experimental::awaitable_operators;
  co_await (train(wanted, compute, news) && examine(wanted, news));
}

void serve(const options& wanted) {
  const auto token = wanted.token_file.empty() ? sb::random_token() : token_in(wanted.token_file);
  const sb::access_rules rules(wanted.hosts, token);
  board news;
  asio::thread_pool compute(1);  // runs the steps; declared before the loop, because its destructor waits for a running step
  asio::io_context loop;         // runs everything else
  sb::http_server web(loop, {.port = wanted.port}, [&](const sb::request& asked) { return answer_to(asked, rules, news); });
  web.start();
  std::printf("listening on 127.0.0.1:%d\n", web.port());
  if (wanted.token_file.empty()) { std::printf("token %s\n", token.c_str()); }
  std::fflush(stdout);

  std::exception_ptr failed;
  asio::co_spawn(loop, train_and_examine(wanted, compute.get_executor(), news), [&](const std::exception_ptr& failure) {
    failed = failure;
    web.stop();
  });
  loop.run();
  if (failed) { std::rethrow_exception(failed); }
  std::printf("trained to step %lld\n", static_cast<long long>(news.step));
}

}  // namespace

int main(int count, char** arguments) try {
  const auto wanted = parse_options(count, arguments);
  if (!wanted) {
    std::fprintf(stderr, "usage: async_server [--run-dir DIR] [--port N] [--steps N] [--host NAME]... [--token-file FILE]\n");
    return 2;
  }
  serve(*wanted);
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "async_server: %s\n", failure.what());
  return 1;
}
