// SPDX-License-Identifier: Apache-2.0
//
// A model whose step is awaited and a hook whose points are, in sessions of one type.
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

/// Lets the event loop do something else first.
inline asio::awaitable<void> a_turn() { co_await asio::post(asio::use_awaitable); }
/// Waits for what never comes, but a cancellation.
inline asio::awaitable<void> for_ever() {
  asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::use_awaitable);
}

/// `adding_model`, whose step takes a turn of the event loop.
struct awaiting_model : adding_model {
  std::function<asio::awaitable<void>()> wait = a_turn;

  asio::awaitable<result> step(const std::int64_t& batch) {
    co_await wait();
    co_return adding_model::step(batch);
  }
};

/// As `scripted_hook`, with all points awaited but `on_error`.
struct awaited_hook {
  static constexpr auto phase = hook_phase::user;
  using act_type = std::function<asio::awaitable<void>(const std::string& point)>;

  std::vector<std::string>* story = nullptr;
  act_type act = nullptr;
  std::function<bool(std::int64_t)> wanted = nullptr;  // by the step that the session stands at

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

/// Writes down on which of two threads it is called.
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
    if (saver.is_on()) {
      with.find_checkpoint = [work = saver.work()] { return work->saver().restore_newest(); };
    }
    return awaited_session_over<Model>(std::move(how), std::move(with), stepped, std::move(saver), std::move(plain), std::move(hook));
  }
  /// Over the model that is awaited.
  [[nodiscard]] awaited_session awaited(std::int64_t every_steps, awaited_hook hook = {}, async_options how = {}) {
    return over(awaiting, every_steps, std::move(hook), {}, std::move(how));
  }
};

}  // namespace stepwell::test
