// SPDX-License-Identifier: Apache-2.0
//
// A model with an asynchronous step, in sessions of one type.
#pragma once

#include "support/async_rig.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <functional>
#include <utility>

namespace stepwell::test {

/// Returns to the event loop once, so that other handlers can run.
inline asio::awaitable<void> a_turn() { co_await asio::post(asio::use_awaitable); }
/// Waits until it is cancelled.
inline asio::awaitable<void> for_ever() {
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

/// An `adding_model` with an asynchronous step, which returns to the event loop once.
struct awaiting_model : adding_model {
  std::function<asio::awaitable<void>()> wait = a_turn;

  asio::awaitable<result> step(const std::int64_t& batch) {
    co_await wait();
    co_return adding_model::step(batch);
  }
};

using awaited_script = scripted_hook_for<awaiting_model>;
using awaited_session = async_monitored_session<model_session<awaiting_model>, checkpoint_saver_hook, awaited_script>;

struct awaited_rig : async_rig {
  awaiting_model awaiting;

  /// Returns a session over the model with the asynchronous step.
  [[nodiscard]] awaited_session awaited(std::int64_t every_steps, awaited_script hook = {}, async_options how = {}) {
    auto saver = every_steps > 0 ? saver_hook(every_steps) : checkpoint_saver_hook::off();
    auto with = setup;
    if (saver.is_on()) { with.find_checkpoint = saver.checkpoint_finder(); }
    return awaited_session(std::move(how), std::move(with), awaiting, std::move(saver), std::move(hook));
  }
};

}  // namespace stepwell::test
