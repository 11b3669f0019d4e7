// SPDX-License-Identifier: Apache-2.0
#include <stepwell/checkpoint/update_fence.hpp>

#include "support/async_rig.hpp"
#include "support/catch.hpp"
#include "support/fenced_model.hpp"

#include <stepwell/training/async_training_session.hpp>

#include <boost/asio/post.hpp>

#include <cstdint>
#include <vector>

namespace sw = stepwell;
using namespace sw::test;

namespace {

/// Records whether a snapshot was being copied, and copies it in the third step, because the pool is held since the second.
struct fenced_base : fenced_values {
  held_pool* background = nullptr;
  std::vector<bool> was_pending = {};

  void forward(std::int64_t batch, sw::update_fence& fence) {
    update_means(batch);
    was_pending.push_back(fence.is_pending());
    if (batch == 2) { background->stop(); }
    fence.wait();
    if (batch == 3) { background->go(); }
  }
};

struct plain_model : fenced_base {
  float step(const std::int64_t& batch, sw::update_fence& fence) {
    forward(batch, fence);
    update_weights(batch);
    return weights[0];
  }
};

struct awaited_model : fenced_base {
  asio::awaitable<float> step(const std::int64_t& batch, sw::update_fence& fence) {
    co_await asio::post(asio::use_awaitable);
    forward(batch, fence);
    co_await asio::post(asio::use_awaitable);
    update_weights(batch);
    co_return weights[0];
  }
};

asio::awaitable<void> run_all(auto& session, auto& source) {
  co_await session.async_start();
  for (;;) {
    const auto step = co_await session.async_next(source);
    if (!step) { break; }
  }
  co_await session.async_close();
}

template<class Model>
void check_overlap() {
  const temporary_directory directory;
  held_pool background;
  asio::io_context io;
  Model model;
  model.background = &background;
  counting_source source;
  auto session = sw::monitored_training_session(sw::defer_start, model, options_of(directory, background.pool),
                                                sw::stop_at_step_hook{{.last_step = 4}});
  auto done = asio::co_spawn(io, run_all(session, source), asio::use_future);
  io.run();
  done.get();
  CHECK(model.was_pending == std::vector<bool>{false, false, true, false});
  for (const std::int64_t step : {0, 2, 4}) { CHECK(saved_at(directory, step) == values_after(step)); }
}

}  // namespace

TEST_CASE("in an asynchronous session, a step computes while the snapshot of its boundary is copied", "[training][async][fence]") {
  check_overlap<plain_model>();
}

TEST_CASE("an awaited step receives the fence", "[training][async][fence]") { check_overlap<awaited_model>(); }
