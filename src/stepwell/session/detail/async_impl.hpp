// SPDX-License-Identifier: Apache-2.0
//
// The implementation of an asynchronous session: the execution of its work on other threads, and its waits. All functions are written
// for `use_awaitable`.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/coro/detail/aborted.hpp"
#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/coro/detail/async_sleep.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/session/detail/async_state.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

// As in blocking_driver.hpp: the types of hooks may be in an unnamed namespace, and a virtual function (of any_async_session) creates frames.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

namespace asio = boost::asio;

/// Throws `operation_aborted` if cancellation was requested.
inline asio::awaitable<void> throw_if_cancelled() {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) { coro::throw_aborted(); }
}

/// Returns true if `failure` is the effect of a cancellation. `failure` may be null.
inline asio::awaitable<bool> is_cancelled_by(const std::exception_ptr& failure) {
  const auto state = co_await asio::this_coro::cancellation_state;
  const bool is_requested = state.cancelled() != asio::cancellation_type::none;
  co_return is_requested&& failure != nullptr&& coro::is_aborted(failure);
}

/// Awaits a user's coroutine as a separate Asio thread of execution, with all kinds of cancellation enabled.
inline asio::awaitable<void> on_its_own(asio::awaitable<void> theirs) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await std::move(theirs);
}

/// Awaits `make()`. Asio's own check for cancellation before each `co_await` is switched off meanwhile, because it would discard completed
/// work.
/// `T` is the result of `make()`, or void.
template<class T, class Make>
asio::awaitable<T> defer_cancellation(Make make) {
  using value_type = std::conditional_t<std::is_void_v<T>, nothing, T>;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr failure;
  std::optional<value_type> value;
  try {
    value_type got = co_await make();
    value.emplace(std::move(got));
  } catch (...) { failure = std::current_exception(); }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) { std::rethrow_exception(failure); }
  if constexpr (!std::is_void_v<T>) { co_return std::move(*value); }
}

/// An asynchronous session.
/// @threads The session's thread, except for the functions that `run_on` runs.
template<class Core>
class async_impl final : public async_state<Core>, public std::enable_shared_from_this<async_impl<Core>> {
  using base = async_state<Core>;

public:
  using base::base;
  using base::core;
  using base::how;
  using base::throw_if_abandoned;

  /// Calls `function` in `where` and completes when it has returned. On another thread, its log messages have the name of the session. A
  /// cancellation only interrupts waits for other sessions. If the coroutine frame is destroyed meanwhile, its destructor cancels a call
  /// that has not begun, and blocks until a running call returns.
  /// @errors Exceptions of `function`.
  template<class Function>
  asio::awaitable<void> run_on(execution_place where, Function& function) {
    if (where == execution_place::here) {
      function();
      co_return;
    }
    auto named_function = [this, &function] {
      const log_scope named(core().options().name);
      function();
    };
    const auto offloaded_call = coro::make_offloaded_call(named_function);
    const typename base::in_flight now(*this, offloaded_call);
    hand_over(where, offloaded_call);
    const interrupts on_cancel(core().requests().signals());
    co_await offloaded_call->done().async_wait_on(asio::use_awaitable, on_cancel);
    throw_if_abandoned();
    offloaded_call->rethrow();
  }

  /// Awaits a user's coroutine on the executor of the caller. A cancellation is forwarded to the coroutine. If the session is abandoned
  /// meanwhile, its parts are destroyed only after the coroutine has ended.
  asio::awaitable<void> await_user(asio::awaitable<void> theirs) {
    const scoped_value now(is_in_user_code_, true);
    std::exception_ptr failure;
    const auto here = co_await asio::this_coro::executor;
    try {
      co_await asio::co_spawn(here, on_its_own(std::move(theirs)), asio::use_awaitable);
    } catch (...) { failure = std::current_exception(); }
    throw_if_abandoned();
    if (failure) { std::rethrow_exception(failure); }
  }

  /// Waits until `when`, or until a stop is requested. @cancel Ends only the wait.
  asio::awaitable<void> wait_until(clock::time_point when) {
    const coro::async_event woken;
    const scoped_value now(event_, &woken);
    const std::stop_callback on_stop(core().requests().signals()->stop_token(), [woken] { woken.set(); });
    co_await coro::async_sleep_until(core().requests().facts().time, when, woken);
    throw_if_abandoned();
  }
  /// Waits until `woken` is set. @cancel Ends only the wait.
  asio::awaitable<void> wait_for(const coro::async_event& woken) {
    const scoped_value now(event_, &woken);
    co_await woken.async_wait(asio::use_awaitable);
    throw_if_abandoned();
  }
  /// Lets other handlers of this executor run. Then begins a new time slice, and consumes its first step.
  asio::awaitable<void> yield() {
    co_await asio::post(asio::use_awaitable);
    throw_if_abandoned();
    slice_.begin(core().requests().facts().time->now());
    static_cast<void>(slice_.is_over());
  }

private:
  using base::event_;
  using base::is_in_user_code_;
  using base::slice_;

  void hand_over(execution_place where, const std::shared_ptr<coro::offloaded_call>& offloaded_call) {
    switch (where) {
      case execution_place::pool: return coro::helper_threads::shared().post([offloaded_call] { offloaded_call->run(); });
      case execution_place::copies: return coro::helper_threads::for_copies().post([offloaded_call] { offloaded_call->run(); });
      case execution_place::own_thread: return coro::helper_threads::shared().post_apart([offloaded_call] { offloaded_call->run(); });
      case execution_place::compute: return asio::post(how().compute(), coro::offloaded_call_ticket(offloaded_call));
      case execution_place::here: return;
    }
  }
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell::detail
