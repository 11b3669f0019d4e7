// SPDX-License-Identifier: Apache-2.0
//
// The operations of an asynchronous session, one coroutine for each.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/session/detail/async_driver.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/async_step.hpp"
#include "stepwell/session/training_session.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

// As in blocking_driver.hpp: the types of hooks may be in an unnamed namespace, and a virtual function (of any_async_session) creates frames.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

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
  core.check_process();
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
  co_return self->core().step_saved_on_request();
}

/// Completes the next step of `holder` with the session protocol. `outcome` is the result of the fast path.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_awaited(std::shared_ptr<Async> self, Holder& holder, std::optional<Step> step,
                                                  step_outcome outcome) {
  const typename Async::operation now(*self);
  self->throw_unless_started();
  loop_attempt<Step, typename Async::core_type, Holder&> attempt(self->core(), holder);
  if (step) { attempt.step.emplace(std::move(*step)); }
  attempt.outcome = outcome;
  attempt.place = self->place;
  std::exception_ptr failure;
  try {
    co_await detail::async_drive(*self, self->core().protocol().step(attempt), attempt);
  } catch (...) { failure = std::current_exception(); }
  const bool is_done = !failure && attempt.outcome == step_outcome::done;
  self->place = is_done ? loop_place() : attempt.place;  // a cancelled loop continues there
  if (failure) { std::rethrow_exception(failure); }
  if (!is_done) { co_return std::nullopt; }
  co_return std::move(attempt.step);
}

/// Converts to a step by moving each member of `from` on its own.
template<class Step>
struct step_members {
  Step& from;
  explicit(false) operator Step() const { return {std::move(from.value), from.global_step, from.attempt, from.rolled_back_from}; }
};

/// Returns the part of `next_of` after the fast path. Not a coroutine and not inlined, so that the frame of `next_of` stays small.
/// @lifetime All arguments must outlive the awaitable.
template<class Step, class Async, class Holder>
[[gnu::noinline, gnu::cold]] asio::awaitable<std::optional<Step>> rest_of_next(Async* self, Holder* holder, std::optional<Step>* step,
                                                                               step_outcome outcome) {
  return detail::defer_cancellation<std::optional<Step>>(
      [self, holder, step, outcome] { return detail::next_awaited<Step>(self->shared_from_this(), *holder, std::move(*step), outcome); });
}

/// Does the next step over the source of `holder`. Usually the step has no boundary work and completes here, without a second coroutine.
/// The frame is small, so that Asio recycles it. The step is returned member by member: a copy of the whole step would load several members
/// at once, and would have to wait until their stores, which have just been made, are complete.
/// @lifetime `self` and `holder` must outlive it.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_of(Async* self, Holder* holder) {
  std::optional<Step> step;
  auto outcome = step_outcome::not_taken;
  if (self->may_step_at_once() && holder->is_attached()) [[likely]] {
    outcome = detail::try_next(self->core(), *holder, self->place, step);
    if (outcome == step_outcome::done && !self->core().boundary_due()) [[likely]] {
      if (self->place.attempt != 1) [[unlikely]] { self->place = {}; }
      co_return step_members<Step>{*step};
    }
  }
  auto rest = detail::rest_of_next(self, holder, &step, outcome);
  co_return co_await std::move(rest);
}

/// Does all steps over the source of `holder`.
/// @lifetime `self` and `holder` must outlive it.
template<class Step, class Result, class Async, class Holder>
asio::awaitable<loop_result<Result>> run_all_of(Async* self, Holder* holder) {
  loop_result<Result> all;
  for (;;) {
    auto step = co_await detail::next_of<Step>(self, holder);
    if (!step) { break; }
    all.last.emplace(std::move(*step));
    ++all.steps;
  }
  all.why = self->core().why();
  all.values = self->core().requests().works().history();
  co_return all;
}

/// Completes a run with the session protocol, and repeats it after a recovery. `outcome` is the result of the fast path.
/// @lifetime `run` must outlive it.
template<class Async, class Run>
asio::awaitable<nothing> run_awaited(std::shared_ptr<Async> self, Run& run, step_outcome outcome) {
  const typename Async::operation now(*self);
  self->throw_unless_started();
  run_attempt<typename Async::core_type, Run> attempt(self->core(), run);
  attempt.outcome = outcome;
  co_await detail::async_drive(*self, self->core().protocol().step(attempt), attempt);
  co_return nothing();
}

/// The result of a run for its caller.
template<class Run>
using result_of_run = decltype(Run::result_of(std::declval<typename Run::value_type>()));

/// Does a run with the arguments stored in `run`, and returns its value for the caller.
/// @lifetime `self` must outlive it.
template<class Async, class Run>
auto run_of(Async* self, Run run) -> asio::awaitable<result_of_run<Run>> {
  auto outcome = step_outcome::not_taken;
  if (self->may_step_at_once()) [[likely]] {
    outcome = detail::try_run(self->core(), run);
    if (outcome == step_outcome::done && !self->core().boundary_due()) [[likely]] { co_return Run::result_of(std::move(*run.value)); }
  }
  auto go_on = [&] { return detail::run_awaited(self->shared_from_this(), run, outcome); };
  auto rest = detail::defer_cancellation<nothing>(go_on);
  static_cast<void>(co_await std::move(rest));
  co_return Run::result_of(std::move(*run.value));
}

/// Waits until a buffer of `pool` is free, and returns it.
template<class Async>
asio::awaitable<snapshot_pool::buffer> buffer_awaited(Async& self, snapshot_pool pool) {
  for (;;) {
    if (auto memory = pool.try_acquire()) { co_return std::move(*memory); }
    const coro::async_event is_free;
    pool.when_available([is_free] { is_free.set(); });
    co_await self.wait_for(is_free);
  }
}

/// Takes a snapshot, into a buffer of `pool` if it is given.
/// @errors Those of `session_engine::copy_state`.
template<class Async>
asio::awaitable<snapshot> snapshot_awaited(std::shared_ptr<Async> self, std::optional<snapshot_pool> pool) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->throw_unless_ready("async_snapshot");
  co_await throw_if_cancelled();
  core.check_copy();
  std::optional<snapshot_pool::buffer> memory;
  if (pool) { memory = co_await detail::buffer_awaited(*self, *pool); }
  snapshot taken;
  auto copy = [&] { taken = core.copy_state(std::move(memory)); };
  co_await self->run_on(execution_place::copies, copy);
  co_return taken;
}

/// Executes a run inside a step function. @errors Its failure is a failure of the step function.
template<class Async, class Run>
asio::awaitable<nothing> take_run_within_step(Async& self, Run& run) {
  auto& core = self.core();
  core.end_body();
  loop_place place;
  if constexpr (Run::is_awaited) {
    bool is_cancelled = false;
    run_work<typename Async::core_type, Run> work{run, place};
    try {
      static_cast<void>(co_await detail::take_work_awaited(self, work));
    } catch (const cancelled&) { is_cancelled = true; }
    if (is_cancelled) { coro::throw_aborted(); }
  } else {
    auto call = [&core, &run] { run.value.emplace(Run::take(core, 1, run.given)); };
    co_await self.run_on(self.place_of_steps(), call);
  }
  if (core.boundary_due()) { co_await detail::async_drive(self, core.protocol().boundary()); }
  co_return nothing();
}
template<class Async, class Run>
auto run_within_step_awaited(Async* self, Run run) -> asio::awaitable<result_of_run<Run>> {
  self->throw_if_abandoned();
  self->core().throw_if_closed();
  auto go_on = [&] { return detail::take_run_within_step(*self, run); };
  auto rest = detail::defer_cancellation<nothing>(go_on);
  static_cast<void>(co_await std::move(rest));
  co_return Run::result_of(std::move(*run.value));
}

/// Calls a step function, and again after each recovery. `call` returns an awaitable. @lifetime `call` must outlive it.
template<class Async, class Call>
asio::awaitable<nothing> step_fn_awaited(std::shared_ptr<Async> self, Call& call) {
  const typename Async::operation now(*self);
  self->throw_unless_started();
  step_fn_attempt<typename Async::core_type, Call> attempt(self->core(), call);
  co_await detail::async_drive(*self, self->core().protocol().step(attempt), attempt);
  co_return nothing();
}

/// Awaits `step_fn` with a `Context`, and returns its result.
template<class Result, class Context, class Async, class StepFn>
asio::awaitable<Result> step_fn_result(std::shared_ptr<Async> self, StepFn& step_fn) {
  std::optional<std::conditional_t<std::is_void_v<Result>, nothing, Result>> result;
  auto call = [&]() -> asio::awaitable<void> {
    Context context(*self);
    co_await detail::result_into(result, step_fn(context));
  };
  auto go_on = [&] { return detail::step_fn_awaited(self, call); };
  auto rest = detail::defer_cancellation<nothing>(go_on);
  static_cast<void>(co_await std::move(rest));
  if constexpr (!std::is_void_v<Result>) { co_return std::move(*result); }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell::detail
