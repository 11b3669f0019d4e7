// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous sessions over the graph of the stub.
#include "stub.hpp"
#include "stub_graph.hpp"
#include "support/catch.hpp"
#include "support/log_capture.hpp"
#include "support/temporary_directory.hpp"

#include <stepwell/async.hpp>
#include <stepwell/hooks/nan_hooks.hpp>
#include <stepwell/hooks/stop_hooks.hpp>
#include <stepwell/tensorflow/async_training.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sw = stepwell;
namespace asio = boost::asio;
namespace test = stepwell::test;
namespace tf = stepwell::tensorflow;

namespace {

/// Runs the session over `feeds` until it stops.
asio::awaitable<std::int64_t> last_step_of(auto& session, auto& feeds) {
  std::int64_t last = 0;
  co_await session.async_start();
  ::stub_reset();
  for (;;) {
    const auto step = co_await session.async_next(feeds);
    if (!step) { break; }
    last = step->global_step;
  }
  co_return last;
}
asio::awaitable<void> closed(auto& session) { co_await session.async_close(); }

}  // namespace

TEST_CASE("an awaited step is one run of TensorFlow, on the executor of the steps", "[tensorflow][async]") {
  const test::log_capture quiet;
  const test::temporary_directory directory;
  auto graph = tf::graph::import_meta_graph(test::write_file(directory / "a.meta", test::stub_meta_graph().SerializeAsString()));
  asio::io_context loop;
  asio::thread_pool workers(1);
  auto session = sw::monitored_training_session(sw::defer_start(sw::async_options().steps_on(workers.get_executor())), graph,
                                                sw::training_options{.checkpoint_dir = directory / "run"}, sw::nan_tensor_hook{"loss"},
                                                sw::stop_at_step_hook{{.last_step = 10}});
  auto feeds = sw::data::source(std::vector<tf::named_feed>(20, {"x:0", tf::tensor(std::vector<float>{2})}));
  auto last = asio::co_spawn(loop, last_step_of(session, feeds), asio::use_future);
  loop.run();
  CHECK(last.get() == 10);
  CHECK(::stub_runs() == 10);
  loop.restart();
  auto done = asio::co_spawn(loop, closed(session), asio::use_future);
  loop.run();
  CHECK_NOTHROW(done.get());
  CHECK(::stub_runs() == 10 + 1);  // the last checkpoint
  workers.join();
}
