// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous driver of the session protocol: awaits its actions, and observes cancellation where the protocol says so.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/async_step.hpp"
#include "stepwell/session/detail/script_coroutine.hpp"

#include <exception>
#include <memory>
#include <utility>

namespace stepwell::detail {

// As in blocking_driver.hpp: the types of hooks may be in an unnamed namespace, and a virtual function (of any_async_session) creates frames.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

template<class Async>
execution_place place_of(Async& self, piece what) {
  switch (what) {
    case piece::attach_source: return execution_place::here;
    case piece::step: return self.place_of_steps();
    case piece::boundary: return execution_place::copies;
    case piece::make_raw: return self.how().creation_waits().value_or(false) ? execution_place::own_thread : execution_place::pool;
    default: return execution_place::pool;
  }
}

/// Executes an action that needs no coroutine. Returns false if it has to be awaited.
template<class Async>
bool execute_at_once(Async& self, const action& next, bool is_awaited_step) {
  if (next.type == action::kind::yield) { return !self.is_slice_over(); }
  if (next.type != action::kind::work || is_awaited_step || place_of(self, next.what) != execution_place::here) { return false; }
  self.core().call(next.what, next.attempt);
  return true;
}

/// Executes an action other than an observation.
template<class Async, class Attempt>
asio::awaitable<void> execute(Async& self, Attempt& attempt, action next, bool is_awaited_step) {
  if (next.type == action::kind::wait) {
    co_await self.wait_until(next.until);
  } else if (next.type == action::kind::yield) {
    co_await self.yield();
  } else if (is_awaited_step) {
    if constexpr (Attempt::is_awaited) { co_await detail::take_awaited(self, attempt); }
  } else {
    auto& core = self.core();
    auto call = [&core, &next] { core.call(next.what, next.attempt); };
    co_await self.run_on(detail::place_of(self, next.what), call);
  }
}

/// Executes all actions of `steps`, a script for `attempt`.
/// @errors Exceptions of the script; `operation_aborted` if the script observed a cancellation.
template<class Async, class Attempt>
asio::awaitable<void> async_drive(Async& self, script steps, Attempt& attempt) {
  const typename Async::running_script running(self, std::move(steps));
  std::exception_ptr failure;
  for (;;) {
    bool has_action = false;
    bool is_cancelled = false;
    try {
      has_action = self.current_script().resume(std::exchange(failure, nullptr));
    } catch (const cancelled&) { is_cancelled = true; }
    if (is_cancelled) { coro::throw_aborted(); }
    if (!has_action) { break; }
    const action next = self.current_script().pending();
    if (next.type == action::kind::observe) {
      const auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) { failure = std::make_exception_ptr(cancelled()); }
      continue;
    }
    try {
      const bool is_awaited_step = Attempt::is_awaited && next.type == action::kind::work && next.what == piece::step;
      const bool is_done = detail::execute_at_once(self, next, is_awaited_step);
      if (!is_done) { co_await detail::execute(self, attempt, next, is_awaited_step); }
    } catch (...) { failure = std::current_exception(); }
    self.throw_if_abandoned();
    if (failure && next.type != action::kind::work && coro::is_aborted(failure)) { failure = std::make_exception_ptr(cancelled()); }
  }
}
template<class Async>
asio::awaitable<void> async_drive(Async& self, script steps) {
  no_attempt none;
  co_await detail::async_drive(self, std::move(steps), none);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell::detail
