// SPDX-License-Identifier: Apache-2.0
//
// A step that is awaited, for the model's sake or a hook's: `run_step` and `take_step` with the same pieces.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/hook/run_request.hpp"
#include "stepwell/session/detail/async_core.hpp"
#include "stepwell/session/detail/step_driver.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// Whether a step of `Raw` with these arguments is to be awaited.
template<class Raw, class... Args>
constexpr bool is_awaited_step() {
  if constexpr (requires { Raw::template awaits<Args...>; }) {
    return Raw::template awaits<Args...>;
  } else {
    return false;
  }
}

/// Whether `failure` is how a coroutine answers a cancellation.
inline bool is_abortion(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) { return error.code() == asio::error::operation_aborted; } catch (...) {
    return false;
  }
}

template<class Result, class Awaitable>
asio::awaitable<void> result_into(std::optional<Result>& result, Awaitable theirs) {
  if constexpr (std::is_void_v<typename Awaitable::value_type>) {
    co_await std::move(theirs);
    result.emplace();
  } else {
    auto got = co_await std::move(theirs);
    result.emplace(std::move(got));
  }
}

/// The run of the raw session alone.
template<class Async, class Outcome, class Order, class... Args>
asio::awaitable<void> run_raw_awaited(Async& self, std::optional<Outcome>& outcome, const Order& order, Args&&... args) {
  auto& raw = self.core().raw();
  using raw_type = std::remove_cvref_t<decltype(raw)>;
  if constexpr (is_awaited_step<raw_type, Args...>()) {
    auto fed = raw_type::fed(order, std::forward<Args>(args)...);
    const auto before = raw.global_step();
    std::optional<typename raw_type::result_type> result;
    auto step = detail::result_into(result, raw.step(fed));
    co_await self.visit(std::move(step), hearing::cancellation);
    outcome.emplace(raw.count(before, std::move(*result)));
  } else {
    auto run = [&] { outcome.emplace(raw.run(order, std::forward<Args>(args)...)); };
    co_await self.elsewhere(self.steps_where(), run);
  }
}

/// As `run_step`; nothing if it was cancelled before the step was done.
/// @lifetime All arguments must outlive it.
template<class Async, class Caller, class... Args>
auto run_step_awaited(Async& self, int attempt, const Caller& caller, Args&&... args)
    -> asio::awaitable<std::optional<taken_of<std::remove_cvref_t<decltype(self.core().raw())>, Caller>>> {
  using raw_type = std::remove_cvref_t<decltype(self.core().raw())>;
  using core_type = typename Async::core_type;
  using hooks_type = typename core_type::awaited_hooks;
  using choice = typename Caller::hook_choice;
  constexpr bool traced = core_type::may_trace() || Caller::has_options;
  auto& core = self.core();
  auto& raw = core.raw();
  auto stage = step_stage::before_run;
  std::optional<taken_of<raw_type, Caller>> taken;
  std::exception_ptr failure;
  try {
    if (stepwell::is_seated(raw)) {
      throw invalid_argument_error("a step that is awaited cannot be taken at a master: the others would wait for it on their event loop");
    }
    run_context<raw_type> context(raw, core.control(), attempt);
    trace_of_run<traced> trace(core.control());
    trace.before_hooks(caller);
    core.begin_run();
    typename hooks_type::template asking<choice, traced> asking(core.hooks(), context);
    co_await self.visit_hooks(asking, self.steps_where(), hearing::cancellation);
    const stepwell::run_request order(caller, asking.take());
    trace.before_run(order);
    stage = step_stage::run;
    [[maybe_unused]] const auto fed = detail::feed_into(raw, order);
    std::optional<typename raw_type::outcome_type> outcome;
    co_await detail::run_raw_awaited(self, outcome, order, std::forward<Args>(args)...);
    stage = step_stage::after_run;
    context.come_to(outcome->step_after);
    trace.after_run(order);
    const run_conditions how{&order.options(), &order.metadata()};
    typename hooks_type::template telling<choice, traced> telling(core.hooks(), context, order.hooks(), raw, *outcome, how);
    co_await self.visit_hooks(telling, self.steps_where(), hearing::nothing);
    core.end_run(outcome->step_after);
    trace.after_hooks(order);
    taken.emplace(taken_by(caller, std::as_const(raw), *outcome));
  } catch (...) { failure = std::current_exception(); }
  if (!failure) { co_return std::move(taken); }
  if (self.is_abandoned()) { throw_aborted(); }
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  if (stage != step_stage::after_run && cancellation.cancelled() != asio::cancellation_type::none && is_abortion(failure)) {
    core.control().drop_requests();
    co_return std::nullopt;
  }
  core.on_failure(stage, failure, attempt);
  std::rethrow_exception(failure);
}

/// As `take_step`; nothing if it was cancelled before the step was done.
/// @lifetime All arguments must outlive it.
template<class Async, class Lease, class Step>
asio::awaitable<std::optional<step_end>> take_step_awaited(Async& self, Lease& lease, std::optional<Step>& step) {
  auto& core = self.core();
  const caller_request<all_hooks> caller{};
  decltype(lease.peek()) batch = nullptr;
  auto look = [&] { batch = batch_of_step(core, lease); };
  co_await self.elsewhere(self.steps_where(), look);
  if (batch == nullptr) { co_return step_end::out_of_data; }
  auto run = [&] {
    if constexpr (std::is_same_v<decltype(batch), const no_data::batch*>) {
      return detail::run_step_awaited(self, self.place.attempt, caller);
    } else {
      return detail::run_step_awaited(self, self.place.attempt, caller, *batch);
    }
  };
  auto outcome = co_await run();
  if (!outcome) { co_return std::nullopt; }
  detail::keep_step(core, lease, self.place, step, *outcome);
  co_return step_end::done;
}

}  // namespace stepwell::detail
