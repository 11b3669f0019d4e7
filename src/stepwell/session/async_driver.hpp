// SPDX-License-Identifier: Apache-2.0
//
// The awaited driver: a start, a step, a run and a close, made of the core's pieces as the blocking driver's are. What may
// wait is done elsewhere, one piece at a time; a cancellation is heard where nothing is done yet.
#pragma once

#include "stepwell/session/async_core.hpp"
#include "stepwell/session/async_run.hpp"
#include "stepwell/session/run_order.hpp"
#include "stepwell/session/step_driver.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// What an awaited function gives that gives nothing.
struct nothing {};

/// Awaits `make()` without Asio's own look at the cancellation before each `co_await`: it would lose what is done already.
/// `T`: what `make()` gives, or void.
template<class T, class Make>
asio::awaitable<T> heard_in_time(Make make) {
  using value_type = std::conditional_t<std::is_void_v<T>, nothing, T>;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr        failure;
  std::optional<value_type> value;
  try {
    value_type got = co_await make();
    value.emplace(std::move(got));
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) { std::rethrow_exception(failure); }
  if constexpr (!std::is_void_v<T>) { co_return std::move(*value); }
}

/// Begins the hooks, then creates the session, again as often as it takes. A start that was cancelled goes on here.
template<class Async>
asio::awaitable<nothing> start_awaited(std::shared_ptr<Async> self) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  if (core.is_closed()) { throw failed_precondition_error("async_start: the session is closed; make a new one"); }
  if (self->is_started) { throw failed_precondition_error("async_start: the session is started already"); }
  if (self->is_spoilt) { throw failed_precondition_error("async_start: it failed before; make a new session"); }
  co_await throw_if_cancelled();
  try {
    if (!self->has_begun) {
      auto begin = [&core] { core.begin(); };
      co_await self->elsewhere(workshop::helpers, begin);
      self->has_begun = true;
      co_await throw_if_cancelled();
    }
    bool is_made = false;
    if (!self->due) { is_made = co_await self->create(); }
    if (!is_made) { static_cast<void>(co_await self->recover()); }
  } catch (const boost::system::system_error& failure) {
    self->is_spoilt = failure.code() != asio::error::operation_aborted;
    throw;
  } catch (...) {
    self->is_spoilt = true;
    throw;
  }
  self->is_started = true;
  co_return nothing();
}

/// Ends the hooks and all the rest, as `session_core::close`; where nothing is started there is nothing to end.
template<class Async>
asio::awaitable<nothing> close_awaited(std::shared_ptr<Async> self) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  if (core.is_closed()) { co_return nothing(); }
  co_await throw_if_cancelled();
  auto close = [&core, is_started = self->is_started] { is_started ? core.close() : core.let_go(); };
  std::exception_ptr failure;
  try {
    co_await self->elsewhere(workshop::helpers, close);
  } catch (...) {
    failure = std::current_exception();
  }
  self->release_leases();
  if (failure) { std::rethrow_exception(failure); }
  co_return nothing();
}

template<class Async>
asio::awaitable<std::int64_t> save_awaited(std::shared_ptr<Async> self) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->refuse_unless_started();
  if (self->due) { throw failed_precondition_error("async_checkpoint_now: the session failed, and is not recovered yet"); }
  co_await throw_if_cancelled();
  std::int64_t step = 0;
  auto         save = [&core, &step] { step = core.save_now(); };
  co_await self->elsewhere(workshop::helpers, save);
  co_return step;
}

/// Before anything is done: hears a cancellation, and lets others have their turn if this one is over. False if they had it:
/// they may have changed everything.
template<class Async>
asio::awaitable<bool> has_turn(Async& self) {
  const bool is_over = !self.how().has_compute() && self.is_turn_over();
  if (is_over) { co_await self.take_turn(); }
  co_await throw_if_cancelled();
  co_return !is_over;
}

/// A step of a loop, sorted out as the blocking loop does.
struct as_in_a_loop {
  template<class Core, class Action>
  static step_end sorted(Core& core, Action& action) {
    return sorted_out(core, action);
  }
};
/// A run of its own: to be repeated after a recovery, or not.
template<bool Repeats>
struct as_a_run {
  template<class Core, class Action>
  static step_end sorted(Core& core, Action& action) {
    try {
      return action();
    } catch (...) {
      if (!core.can_recover()) { throw; }
      if (!Repeats) { std::rethrow_exception(core.failure()); }  // the one at its root (WRAP-5)
    }
    return step_end::to_recover;
  }
};

/// Does `step`, where steps are done, unless `end` says that it is done; then keeps the boundary elsewhere, if it is due.
template<class Sort, class Async, class Step>
asio::awaitable<step_end> step_and_boundary(Async& self, Step& step, std::optional<step_end> end) {
  auto& core = self.core();
  if (!end) {
    auto take = [&] { end = Sort::sorted(core, step); };
    if (self.how().has_compute()) { co_await self.elsewhere(workshop::compute, take); }
    else { take(); }
  }
  if (end == step_end::done && core.boundary_due()) {
    auto boundary = [&core] { return core.boundary_or_fail(), step_end::done; };
    auto keep = [&] { end = Sort::sorted(core, boundary); };
    co_await self.elsewhere(workshop::helpers, keep);
  }
  co_return *end;
}

/// The loop around one step of a source, as `steps_over` has it. `end`: how the step went, up to its boundary, if it was
/// taken already.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_awaited(std::shared_ptr<Async> self, Holder& holder, std::optional<Step> step,
                                                  std::optional<step_end> end) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->refuse_unless_started();
  auto  take = [&] { return take_step(core, holder.lease(), self->place, step); };
  for (;;) {
    if (!end) {
      if (core.should_stop()) { break; }
      const bool is_ready = co_await has_turn(*self);
      if (!is_ready) { continue; }
      holder.take();
      if (self->due || core.recovery_due()) { end = step_end::to_recover; }
    }
    if (!end || end == step_end::done) { end = co_await step_and_boundary<as_in_a_loop>(*self, take, end); }
    if (end == step_end::done) {
      self->place = {};
      co_return std::move(step);
    }
    if (end == step_end::out_of_data && is_over(core)) { break; }
    const auto failure = core.failure();
    self->place = co_await self->recover();
    if (core.take_skip() && !holder.lease().skip_present()) { std::rethrow_exception(failure); }
    end.reset();
  }
  holder.release();
  core.throw_if_singular();
  co_return std::nullopt;
}

template<class Step, class Async, class Holder>
[[gnu::noinline]] step_end try_step(Async& self, Holder& holder, std::optional<Step>& step) {
  auto& core = self.core();
  return sorted_out(core, [&] { return take_step(core, holder.lease(), self.place, step); });
}

/// The next step of the source of `holder`. Nearly always that is a step and nothing else, which needs no second coroutine.
/// The frame is small, so that Asio recycles it.
/// @lifetime `self` and `holder` must outlive it.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_of(Async* self, Holder* holder) {
  std::optional<Step>     step;
  std::optional<step_end> end;
  if (self->may_step_at_once() && holder->is_held()) [[likely]] {
    end = try_step(*self, *holder, step);
    if (end == step_end::done && !self->core().boundary_due()) [[likely]] {
      if (self->place.attempt != 1) { self->place = {}; }
      co_return std::move(step);
    }
  }
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr failure;
  try {
    step = co_await next_awaited<Step>(self->shared_from_this(), *holder, std::move(step), end);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) { std::rethrow_exception(failure); }
  co_return std::move(step);
}

/// A run, repeated after a recovery as `run_call` does. `end`: how it went up to its boundary, if it was tried already.
/// @lifetime `run` must outlive it.
template<class Async, class Run>
asio::awaitable<nothing> run_awaited(std::shared_ptr<Async> self, Run& run, std::optional<step_end> end) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->refuse_unless_started();
  int  attempt = 1;
  auto once = [&] { return run.once(core, attempt); };
  if (!end) {
    static_cast<void>(co_await has_turn(*self));
    if (self->due || core.recovery_due()) { static_cast<void>(co_await self->recover()); }
  }
  for (;;) {
    if (end != step_end::to_recover) { end = co_await step_and_boundary<as_a_run<Run::repeats>>(*self, once, end); }
    if (end == step_end::done) { co_return nothing(); }
    const auto failure = core.failure();
    const auto place = co_await self->recover();
    if (core.take_skip()) { std::rethrow_exception(failure); }  // of this call there is nothing left to run
    attempt = place.attempt;
    end.reset();
  }
}

template<class Async, class Run>
[[gnu::noinline]] step_end try_run(Async& self, Run& run) {
  auto& core = self.core();
  auto  once = [&] { return run.once(core, 1); };
  return as_a_run<Run::repeats>::sorted(core, once);
}

/// A run of what `run` was given; the value of it for the caller.
/// @lifetime `self` must outlive it.
template<class Async, class Run>
auto run_of(Async* self, Run run) -> asio::awaitable<value_of_run<Run>> {
  std::optional<step_end> end;
  if (self->may_step_at_once()) [[likely]] {
    end = try_run(*self, run);
    if (end == step_end::done && !self->core().boundary_due()) [[likely]] { co_return run.value(); }
  }
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr failure;
  try {
    static_cast<void>(co_await run_awaited(self->shared_from_this(), run, end));
  } catch (...) {
    failure = std::current_exception();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) { std::rethrow_exception(failure); }
  co_return run.value();
}

}  // namespace stepwell::detail
