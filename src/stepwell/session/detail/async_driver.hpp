// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous driver of the session protocol: awaits its actions, and observes cancellation where the protocol says so.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/async_parts.hpp"
#include "stepwell/session/detail/async_run.hpp"
#include "stepwell/session/detail/async_step.hpp"
#include "stepwell/session/detail/run_step.hpp"
#include "stepwell/session/detail/script.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// Calls the hooks of a session with awaitable hooks. Returns false if `what` is not a call of hooks.
template<class Async>
asio::awaitable<bool> await_hooks(Async& self, piece what) {
  using core_type = typename Async::core_type;
  auto& core = self.core();
  if (what == piece::begin_hooks) {
    typename core_type::awaited_hooks::beginning hooks(core.hooks());
    co_await self.call_hooks(hooks, execution_place::pool, cancellation_mode::deferred);
    co_return true;
  }
  if (what != piece::notify_created && what != piece::end_hooks) { co_return false; }
  session_handle<typename core_type::raw_type> handle(core.raw(), core.control());
  if (what == piece::notify_created) {
    typename core_type::awaited_hooks::creation hooks(core.hooks(), handle, core.threads());
    co_await self.call_hooks(hooks, execution_place::pool, cancellation_mode::deferred);
  } else {
    typename core_type::awaited_hooks::ending hooks(core.hooks(), handle, core.failures_of_closing());
    co_await self.call_hooks(hooks, execution_place::pool, cancellation_mode::deferred);
  }
  co_return true;
}

template<class Async>
execution_place place_of(Async& self, piece what) {
  switch (what) {
    case piece::attach_source: return execution_place::here;
    case piece::step: return self.place_of_steps();
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

/// Executes one unit of work.
template<class Async, class Attempt>
asio::awaitable<void> work(Async& self, Attempt& attempt, action next, bool is_awaited_step) {
  using core_type = typename Async::core_type;
  auto& core = self.core();
  if constexpr (core_type::awaits_hooks()) {
    const bool is_done = co_await detail::await_hooks(self, next.what);
    if (is_done) { co_return; }
  }
  if (is_awaited_step) {
    co_await attempt.take_awaited();
    co_return;
  }
  auto call = [&core, &next] { core.call(next.what, next.attempt); };
  co_await self.run_on(detail::place_of(self, next.what), call);
}

template<class Async, class Attempt>
asio::awaitable<void> execute(Async& self, Attempt& attempt, action next, bool is_awaited_step) {
  switch (next.type) {
    case action::kind::work: co_await detail::work(self, attempt, next, is_awaited_step); break;
    case action::kind::wait: co_await self.wait_until(next.until); break;
    case action::kind::yield: co_await self.yield(); break;
    case action::kind::observe: break;
  }
}

/// Executes all actions of `steps`, a script for `attempt`.
/// @errors Exceptions of the script; `operation_aborted` if the script observed a cancellation.
template<class Async, class Attempt>
asio::awaitable<void> async_drive(Async& self, script steps, Attempt& attempt) {
  self.set_script(std::move(steps));
  std::exception_ptr failure;
  for (;;) {
    bool has_action = false;
    bool is_cancelled = false;
    try {
      has_action = self.current_script().resume(std::exchange(failure, nullptr));
    } catch (const cancelled&) { is_cancelled = true; }
    if (is_cancelled) { throw_aborted(); }
    if (!has_action) { break; }
    const action next = self.current_script().pending();
    if (next.type == action::kind::observe) {
      const auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) { failure = std::make_exception_ptr(cancelled()); }
      continue;
    }
    try {
      const bool is_awaited_step = next.type == action::kind::work && next.what == piece::step && attempt.must_await();
      const bool is_done = detail::execute_at_once(self, next, is_awaited_step);
      if (!is_done) { co_await detail::execute(self, attempt, next, is_awaited_step); }
    } catch (...) { failure = std::current_exception(); }
    self.throw_if_abandoned();
    if (failure && next.type != action::kind::work && is_aborted(failure)) { failure = std::make_exception_ptr(cancelled()); }
  }
}
template<class Async>
asio::awaitable<void> async_drive(Async& self, script steps) {
  no_attempt none;
  co_await detail::async_drive(self, std::move(steps), none);
}

// ---- the operations

template<class Async>
asio::awaitable<nothing> start_awaited(std::shared_ptr<Async> self) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  if (core.is_closed()) { throw failed_precondition_error("async_start: the session is closed; create a new session"); }
  if (self->is_started()) { throw failed_precondition_error("async_start: the session is started already"); }
  if (core.state().phase() == session_phase::start_failed) {
    throw failed_precondition_error("async_start: an earlier start of this session failed; create a new session");
  }
  co_await detail::async_drive(*self, core.protocol().start());
  co_return nothing();
}

/// Ends the session with `leave`, and releases all files that it has locked.
template<class Async, class Leave>
asio::awaitable<nothing> leave_awaited(Async& self, Leave& leave) {
  const bool is_started = self.is_started();
  std::exception_ptr failure;
  self.begin_release();
  try {
    co_await leave();
  } catch (...) { failure = std::current_exception(); }
  self.throw_if_abandoned();
  self.sources().release_all();
  if (is_started) { self.end_release(); }
  if (failure) { std::rethrow_exception(failure); }
  co_return nothing();
}

template<class Async>
asio::awaitable<nothing> close_awaited(std::shared_ptr<Async> self) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  if (core.is_closed()) { co_return nothing(); }
  co_await detail::throw_if_cancelled();
  auto close = [&] { return detail::async_drive(*self, core.protocol().close()); };
  co_return co_await detail::leave_awaited(*self, close);
}

/// Abandons the session. A cancellation is ignored, because it may be the error.
template<class Async>
asio::awaitable<nothing> abandon_awaited(std::shared_ptr<Async> self, std::exception_ptr why) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  if (core.is_closed()) { co_return nothing(); }
  auto abandon = [&] { return self->is_started() ? core.abandon(why) : core.shut_down(); };
  auto leave = [&] { return self->run_on(execution_place::pool, abandon); };
  co_return co_await detail::leave_awaited(*self, leave);
}

template<class Async>
asio::awaitable<std::int64_t> save_awaited(std::shared_ptr<Async> self) {
  const typename Async::operation now(*self);
  self->throw_unless_ready("async_checkpoint_now");
  co_await detail::async_drive(*self, self->core().protocol().save_now());
  co_return self->core().raw().global_step();
}

/// Completes the next step of `holder` with the session protocol. `outcome` is the result of the fast path.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_awaited(std::shared_ptr<Async> self, Holder& holder, std::optional<Step> step,
                                                  step_outcome outcome) {
  const typename Async::operation now(*self);
  self->throw_unless_started();
  async_loop_attempt<Step, Async, Holder> attempt(*self, holder, step, outcome);
  std::exception_ptr failure;
  try {
    co_await detail::async_drive(*self, self->core().protocol().step(attempt), attempt);
  } catch (...) { failure = std::current_exception(); }
  const bool is_done = !failure && attempt.outcome == step_outcome::done;
  self->place = is_done ? loop_place() : attempt.place;  // a cancelled loop continues there
  if (failure) { std::rethrow_exception(failure); }
  if (!is_done) { co_return std::nullopt; }
  co_return std::move(step);
}

/// Does the next step over the source of `holder`. Usually the step has no boundary work and completes here, without a second coroutine.
/// The frame is small, so that Asio recycles it.
/// @lifetime `self` and `holder` must outlive it.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_of(Async* self, Holder* holder) {
  std::optional<Step> step;
  auto outcome = step_outcome::not_taken;
  if (self->may_step_at_once() && holder->is_held()) [[likely]] {
    outcome = detail::try_next(*self, *holder, step);
    if (outcome == step_outcome::done && !self->core().boundary_due()) [[likely]] {
      if (self->place.attempt != 1) { self->place = {}; }
      co_return std::move(step);
    }
  }
  auto go_on = [&] { return detail::next_awaited<Step>(self->shared_from_this(), *holder, std::move(step), outcome); };
  auto rest = detail::defer_cancellation<std::optional<Step>>(go_on);
  co_return co_await std::move(rest);
}

/// Completes a run with the session protocol, and repeats it after a recovery. `outcome` is the result of the fast path.
/// @lifetime `run` must outlive it.
template<class Async, class Run>
asio::awaitable<nothing> run_awaited(std::shared_ptr<Async> self, Run& run, step_outcome outcome) {
  const typename Async::operation now(*self);
  self->throw_unless_started();
  async_run_attempt<Async, Run> attempt(*self, run, outcome);
  co_await detail::async_drive(*self, self->core().protocol().step(attempt), attempt);
  co_return nothing();
}

/// Does a run with the arguments stored in `run`, and returns its value for the caller.
/// @lifetime `self` must outlive it.
template<class Async, class Run>
auto run_of(Async* self, Run run) -> asio::awaitable<value_of_run<Run>> {
  auto outcome = step_outcome::not_taken;
  if (self->may_step_at_once()) [[likely]] {
    outcome = detail::try_run(*self, run);
    if (outcome == step_outcome::done && !self->core().boundary_due()) [[likely]] { co_return run.value(); }
  }
  auto go_on = [&] { return detail::run_awaited(self->shared_from_this(), run, outcome); };
  auto rest = detail::defer_cancellation<nothing>(go_on);
  static_cast<void>(co_await std::move(rest));
  co_return run.value();
}

}  // namespace stepwell::detail
