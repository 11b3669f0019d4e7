// SPDX-License-Identifier: Apache-2.0
//
// The awaited driver: a start, a step, a run and a close, made of the core's pieces as the blocking driver's are. What may
// wait is done elsewhere, one piece at a time; a cancellation is heard where nothing is done yet.
#pragma once

#include "stepwell/hook/run_request.hpp"
#include "stepwell/session/detail/async_core.hpp"
#include "stepwell/session/detail/async_run.hpp"
#include "stepwell/session/detail/async_step.hpp"
#include "stepwell/session/detail/step_driver.hpp"

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

/// As `session_core::begin`.
template<class Async>
asio::awaitable<void> begin_hooks(Async& self) {
  using core_type = typename Async::core_type;
  auto& core = self.core();
  if constexpr (core_type::awaits_hooks()) {
    auto look = [&core] { core.look_ahead(); };
    co_await self.elsewhere(workshop::helpers, look);
    typename core_type::awaited_hooks::beginning hooks(core.hooks());
    co_await self.visit_hooks(hooks, workshop::helpers, hearing::nothing);
  } else {
    auto begin = [&core] { core.begin(); };
    co_await self.elsewhere(workshop::helpers, begin);
  }
}
/// As `session_core::close`.
template<class Async>
asio::awaitable<void> close_hooks_and_all(Async& self) {
  using core_type = typename Async::core_type;
  auto& core = self.core();
  if constexpr (core_type::awaits_hooks()) {
    if (!core.begin_to_close()) { co_return; }
    const auto until = core.grace();
    first_failure failures;
    session_handle<std::remove_cvref_t<decltype(core.raw())>> handle(core.raw(), core.control());
    typename core_type::awaited_hooks::ending hooks(core.hooks(), handle, failures);
    co_await self.visit_hooks(hooks, workshop::helpers, hearing::nothing);
    auto finish = [&] { core.finish_closing(until, failures); };
    co_await self.elsewhere(workshop::helpers, finish);
  } else {
    auto close = [&core] { core.close(); };
    co_await self.elsewhere(workshop::helpers, close);
  }
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
      co_await detail::begin_hooks(*self);
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
  auto let_go = [&core] { core.let_go(); };
  std::exception_ptr failure;
  self->begin_release();
  try {
    if (self->is_started) {
      co_await detail::close_hooks_and_all(*self);
    } else {
      co_await self->elsewhere(workshop::helpers, let_go);
    }
  } catch (...) { failure = std::current_exception(); }
  self->sources().release_leases();
  if (self->is_started) { self->end_release(); }
  if (failure) { std::rethrow_exception(failure); }
  co_return nothing();
}

/// As `session_frame::abandon`, on a thread that may block. A cancellation is not heard: it may be what has ended the loop.
template<class Async>
asio::awaitable<nothing> abandon_awaited(std::shared_ptr<Async> self, std::exception_ptr why) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  if (core.is_closed()) { co_return nothing(); }
  const bool is_started = self->is_started;
  auto leave = [&core, &why, is_started] {
    if (is_started) {
      core.abandon(why);
    } else {
      core.let_go();
    }
  };
  self->begin_release();
  co_await self->elsewhere(workshop::helpers, leave);
  self->sources().release_leases();
  if (is_started) { self->end_release(); }
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
  auto save = [&core, &step] { step = core.save_now(); };
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
    return detail::sorted_out(core, action);
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
      if constexpr (!Repeats) { detail::throw_root(core); }
      if (!core.can_recover()) { throw; }
    }
    return step_end::to_recover;
  }
};

/// A step of a loop with the next batch of `holder`, into `step`.
template<class Step, class Async, class Holder>
class loop_step {
  using lease_type = std::remove_cvref_t<decltype(std::declval<Holder&>().lease())>;
  using batch_type = decltype(*std::declval<lease_type&>().peek());
  using raw_type = std::remove_cvref_t<decltype(std::declval<Async&>().core().raw())>;

public:
  using sort = as_in_a_loop;
  static constexpr bool is_awaited =
      std::is_same_v<batch_type, const no_data::batch&> ? is_awaited_step<raw_type>() : is_awaited_step<raw_type, batch_type>();

  loop_step(Async& self, Holder& holder, std::optional<Step>& step) noexcept : self_(self), holder_(holder), step_(step) {}
  [[nodiscard]] int attempt() const noexcept { return self_.place.attempt; }
  step_end at_once() { return detail::take_step(self_.core(), holder_.lease(), self_.place, step_); }
  asio::awaitable<std::optional<step_end>> awaited() { return detail::take_step_awaited(self_, holder_.lease(), step_); }

private:
  Async& self_;
  Holder& holder_;
  std::optional<Step>& step_;
};

/// One run of its own, for the `attempt`-th time.
template<class Async, class Run>
class single_step {
public:
  using sort = as_a_run<Run::repeats>;
  static constexpr bool is_awaited = Run::is_awaited;

  single_step(Async& self, Run& run, const int& attempt) noexcept : self_(self), run_(run), attempt_(attempt) {}
  [[nodiscard]] int attempt() const noexcept { return attempt_; }
  step_end at_once() { return run_.once(self_.core(), attempt_); }
  asio::awaitable<std::optional<step_end>> awaited() { return run_.once_awaited(self_, attempt_); }

private:
  Async& self_;
  Run& run_;
  const int& attempt_;
};

/// Whether the model or a hook has this step awaited. Hooks are asked in any case.
template<class Async, class Step>
[[nodiscard, gnu::always_inline]] inline bool must_await(Async& self, const Step& step) {
  const bool hooks_wait = self.core().hooks_wait(step.attempt());
  return Step::is_awaited || hooks_wait;
}

/// A step that needs no waiting, sorted out.
template<class Async, class Step>
[[gnu::noinline]] step_end try_at_once(Async& self, Step& step) {
  auto take = [&step] { return step.at_once(); };
  return Step::sort::sorted(self.core(), take);
}
/// A step in which something is awaited, sorted out. @errors `operation_aborted` if it was cancelled before it was done.
template<class Async, class Step>
asio::awaitable<step_end> try_awaited(Async& self, Step& step) {
  std::optional<step_end> end;
  std::exception_ptr failure;
  try {
    end = co_await step.awaited();
  } catch (...) { failure = std::current_exception(); }
  if (self.is_abandoned() || (!failure && !end)) { throw_aborted(); }
  auto tell = [&] {
    if (failure) { std::rethrow_exception(failure); }
    return *end;
  };
  co_return Step::sort::sorted(self.core(), tell);
}

/// Does `step`, where steps are done, unless `end` says that it is done; then keeps the boundary elsewhere, if it is due.
template<class Async, class Step>
asio::awaitable<step_end> step_and_boundary(Async& self, Step& step, std::optional<step_end> end) {
  auto& core = self.core();
  if constexpr (Step::is_awaited || Async::core_type::awaits_hooks_in_runs()) {
    if (!end && detail::must_await(self, step)) { end = co_await detail::try_awaited(self, step); }
  }
  if constexpr (!Step::is_awaited) {
    auto take = [&] { end = detail::try_at_once(self, step); };
    if (!end) { co_await self.elsewhere(self.steps_where(), take); }
  }
  if (end == step_end::done && core.boundary_due()) {
    auto boundary = [&core] { return core.boundary_or_fail(), step_end::done; };
    auto keep = [&] { end = Step::sort::sorted(core, boundary); };
    co_await self.elsewhere(workshop::helpers, keep);
  }
  co_return *end;
}

/// Whether `step` was taken without further ado, and there is nothing to do after it. Else `end` says how far it came.
template<class Async, class Step>
[[nodiscard, gnu::always_inline]] inline bool is_taken_at_once(Async& self, Step& step, std::optional<step_end>& end) {
  if constexpr (Step::is_awaited) {
    return false;
  } else {
    if (detail::must_await(self, step)) { return false; }
    end = detail::try_at_once(self, step);
    return end == step_end::done && !self.core().boundary_due();
  }
}

/// The loop around one step of a source, as `steps_over` has it. `end`: how the step went, up to its boundary, if it was
/// taken already.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_awaited(std::shared_ptr<Async> self, Holder& holder, std::optional<Step> step,
                                                  std::optional<step_end> end) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->refuse_unless_started();
  loop_step<Step, Async, Holder> one(*self, holder, step);
  for (;;) {
    if (!end) {
      if (core.should_stop()) { break; }
      const bool is_ready = co_await detail::has_turn(*self);
      if (!is_ready) { continue; }
      holder.take();
      if (self->due || core.recovery_due()) { end = step_end::to_recover; }
    }
    if (!end || end == step_end::done) { end = co_await detail::step_and_boundary(*self, one, end); }
    if (end == step_end::done) {
      self->place = {};
      co_return std::move(step);
    }
    if (end == step_end::out_of_data && detail::is_over(core)) { break; }
    const auto failure = core.failure();
    self->place = co_await self->recover();
    if (core.take_skip() && !holder.lease().skip_present()) { std::rethrow_exception(failure); }
    end.reset();
  }
  holder.release();
  core.throw_if_singular();
  co_return std::nullopt;
}

/// The next step of the source of `holder`. Nearly always that is a step and nothing else, which needs no second coroutine.
/// The frame is small, so that Asio recycles it.
/// @lifetime `self` and `holder` must outlive it.
template<class Step, class Async, class Holder>
asio::awaitable<std::optional<Step>> next_of(Async* self, Holder* holder) {
  std::optional<Step> step;
  std::optional<step_end> end;
  if (self->may_step_at_once() && holder->is_held()) [[likely]] {
    loop_step<Step, Async, Holder> one(*self, *holder, step);
    if (is_taken_at_once(*self, one, end)) [[likely]] {
      if (self->place.attempt != 1) { self->place = {}; }
      co_return std::move(step);
    }
  }
  auto go_on = [&] { return next_awaited<Step>(self->shared_from_this(), *holder, std::move(step), end); };
  auto rest = heard_in_time<std::optional<Step>>(go_on);
  co_return co_await std::move(rest);
}

/// A run, repeated after a recovery as `run_call` does. `end`: how it went up to its boundary, if it was tried already.
/// @lifetime `run` must outlive it.
template<class Async, class Run>
asio::awaitable<nothing> run_awaited(std::shared_ptr<Async> self, Run& run, std::optional<step_end> end) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->refuse_unless_started();
  int attempt = 1;
  single_step<Async, Run> one(*self, run, attempt);
  if (!end) {
    static_cast<void>(co_await detail::has_turn(*self));
    if (self->due || core.recovery_due()) { static_cast<void>(co_await self->recover()); }
  }
  for (;;) {
    if (end != step_end::to_recover) { end = co_await detail::step_and_boundary(*self, one, end); }
    if (end == step_end::done) { co_return nothing(); }
    const auto failure = core.failure();
    const auto place = co_await self->recover();
    if (core.take_skip()) { std::rethrow_exception(failure); }  // of this call there is nothing left to run
    attempt = place.attempt;
    end.reset();
  }
}

/// A run of what `run` was given; the value of it for the caller.
/// @lifetime `self` must outlive it.
template<class Async, class Run>
auto run_of(Async* self, Run run) -> asio::awaitable<value_of_run<Run>> {
  std::optional<step_end> end;
  if (self->may_step_at_once()) [[likely]] {
    const int first = 1;
    single_step<Async, Run> one(*self, run, first);
    if (is_taken_at_once(*self, one, end)) [[likely]] { co_return run.value(); }
  }
  auto go_on = [&] { return detail::run_awaited(self->shared_from_this(), run, end); };
  auto rest = heard_in_time<nothing>(go_on);
  static_cast<void>(co_await std::move(rest));
  co_return run.value();
}

}  // namespace stepwell::detail
