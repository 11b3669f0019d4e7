// SPDX-License-Identifier: Apache-2.0
//
// A model with an asynchronous step and a hook with asynchronous points, in sessions of one type.
#pragma once

#include "support/async_rig.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

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

/// Like `scripted_hook`, but all points except `on_error` are asynchronous.
struct awaited_hook {
  static constexpr auto phase = hook_phase::user;
  using act_type = std::function<asio::awaitable<void>(const std::string& point)>;

  std::vector<std::string>* story = nullptr;
  act_type act = nullptr;
  std::function<bool(std::int64_t)> wanted = nullptr;  // argument: the global step of the session

  asio::awaitable<void> begin() { return tell("begin", -1); }
  asio::awaitable<void> after_create_session(auto& session, auto&) { return tell("create", session.global_step()); }
  bool wants(const auto& context) noexcept { return !wanted || wanted(context.global_step()); }
  asio::awaitable<void> before_run(auto& context) { return tell("before", context.global_step()); }
  asio::awaitable<void> after_run(auto& context, const auto&) { return tell("after", context.global_step()); }
  void on_error(auto&, const std::exception_ptr&) { write("error", -1); }
  asio::awaitable<void> end(auto& session) { return tell("end", session.global_step()); }

private:
  asio::awaitable<void> tell(std::string point, std::int64_t step) {
    co_await a_turn();
    write(point, step);
    if (act) { co_await act(point); }
  }
  void write(const std::string& point, std::int64_t step) const {
    if (story != nullptr) { story->push_back(step < 0 ? point : point + " " + std::to_string(step)); }
  }
};

/// A hook with synchronous points. It records its calls with their steps.
struct placed_hook {
  std::vector<std::string>* story = nullptr;
  void before_run(auto& context) { tell("plain before", context.global_step()); }
  void after_run(auto& context, const auto&) { tell("plain after", context.global_step()); }

private:
  void tell(const char* point, std::int64_t step) const {
    if (story != nullptr) { story->push_back(std::string(point) + " " + std::to_string(step)); }
  }
};

template<class Model>
using awaited_session_over = async_monitored_session<model_session<Model>, checkpoint_saver_hook, placed_hook, awaited_hook>;
using awaited_session = awaited_session_over<awaiting_model>;

struct awaited_rig : async_rig {
  awaiting_model awaiting;

  template<class Model>
  [[nodiscard]] auto over(Model& stepped, std::int64_t every_steps, awaited_hook hook = {}, placed_hook plain = {},
                          async_options how = {}) {
    auto saver = every_steps > 0 ? saver_hook(every_steps) : checkpoint_saver_hook::off();
    auto with = settings;
    if (saver.is_on()) { with.find_checkpoint = saver.checkpoint_finder(); }
    return awaited_session_over<Model>(std::move(how), std::move(with), stepped, std::move(saver), std::move(plain), std::move(hook));
  }
  /// Returns a session over the model with the asynchronous step.
  [[nodiscard]] awaited_session awaited(std::int64_t every_steps, awaited_hook hook = {}, async_options how = {}) {
    return over(awaiting, every_steps, std::move(hook), {}, std::move(how));
  }
};

}  // namespace stepwell::test
