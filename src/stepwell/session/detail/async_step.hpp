// SPDX-License-Identifier: Apache-2.0
//
// A step in which the model is awaited, in a loop, a run and a step function.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/run_step.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

// As in blocking_driver.hpp: the types of hooks may be in an unnamed namespace, and a virtual function (of any_async_session) creates frames.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

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

/// Runs the raw session, without hooks.
template<class Async, class Outcome, class Order, class... Args>
asio::awaitable<void> run_raw_awaited(Async& self, std::optional<Outcome>& outcome, const Order& order, Args&&... args) {
  auto& raw = self.core().raw();
  using raw_type = std::remove_cvref_t<decltype(raw)>;
  auto fed = raw.fed(order, std::forward<Args>(args)...);
  const auto before = raw.global_step();
  std::optional<typename raw_type::result_type> result;
  auto step = detail::result_into(result, raw.step(fed));
  co_await self.await_user(std::move(step));
  outcome.emplace(raw.count(before, std::move(*result)));
}

/// Like `run_step`, but awaited. Returns an empty value if it was cancelled before the step was done.
/// @lifetime All arguments must outlive it.
template<class Async, class Caller, class... Args>
auto run_step_awaited(Async& self, int attempt, const Caller& caller, Args&&... args)
    -> asio::awaitable<std::optional<extracted<std::remove_cvref_t<decltype(self.core().raw())>, Caller>>> {
  using raw_type = std::remove_cvref_t<decltype(self.core().raw())>;
  constexpr bool traced = is_traced_run<typename Async::core_type, Caller>;
  auto& core = self.core();
  auto& raw = core.raw();
  auto stage = step_stage::before_run;
  std::optional<extracted<raw_type, Caller>> taken;
  std::exception_ptr failure;
  try {
    if (detail::is_shared(raw)) {
      throw invalid_argument_error("an awaited step cannot run on a shared master: it would block the event loops of the other sessions");
    }
    run_context<raw_type> context(raw, core.requests(), attempt);
    trace_of_run<traced> trace(core.requests());
    std::optional<decltype(detail::begin_run(core, trace, context, caller))> order;
    auto before = [&] { order.emplace(detail::begin_run(core, trace, context, caller)); };
    co_await self.run_on(self.place_of_steps(), before);
    stage = step_stage::run;
    [[maybe_unused]] const auto held = detail::hold_in_run(raw, *order);
    std::optional<typename raw_type::outcome_type> outcome;
    {
      [[maybe_unused]] const awaited_part<traced> part(context.trace(), "run", "session");
      co_await detail::run_raw_awaited(self, outcome, *order, std::forward<Args>(args)...);
    }
    stage = step_stage::after_run;
    auto after = [&] { taken.emplace(detail::end_run(core, trace, context, *order, *outcome, caller)); };
    co_await self.run_on(self.place_of_steps(), after);
  } catch (...) { failure = std::current_exception(); }
  if (!failure) { co_return std::move(taken); }
  self.throw_if_abandoned();
  const bool is_cancelled = co_await detail::is_cancelled_by(failure);
  if (stage == step_stage::run && is_cancelled) {
    core.cancel_run();
    co_return std::nullopt;
  }
  core.on_failure(stage, failure, attempt);
  std::rethrow_exception(failure);
}

/// The awaited form of `take_step`. Returns an empty value if it was cancelled before the step was done.
template<class Async, class Step, class Core, class Holder>
asio::awaitable<std::optional<step_outcome>> take_once(Async& self, loop_attempt<Step, Core, Holder>& loop) {
  auto& core = self.core();
  auto& cursor = loop.cursor();
  const caller_request<all_hooks> caller{};
  decltype(cursor.peek()) batch = nullptr;
  auto look = [&] {
    std::optional<log_scope> named;  // for the messages of a rewind
    if (cursor.is_ahead()) [[unlikely]] { named.emplace(core.options().name); }
    batch = detail::batch_of_step(core, cursor);
  };
  co_await self.run_on(self.place_of_steps(), look);
  if (batch == nullptr) { co_return step_outcome::out_of_data; }
  [[maybe_unused]] const auto shown = cursor.show_epoch(core.requests().facts());
  auto run = [&](auto&... given) { return detail::run_step_awaited(self, loop.place.attempt, caller, given...); };
  auto outcome = co_await detail::with_batch(batch, run);
  if (!outcome) { co_return std::nullopt; }
  detail::keep_step(core, cursor, loop.place, loop.step, *outcome);
  co_return step_outcome::done;
}

/// Does a run, awaited. Returns an empty value if it was cancelled before the step was done.
template<class Async, class Run>
asio::awaitable<std::optional<step_outcome>> take_run_awaited(Async& self, Run& run, int attempt) {
  run.value.reset();
  const auto caller = Run::caller_of(run.given);
  auto begin = [&](auto&&... args) { return detail::run_step_awaited(self, attempt, caller, std::forward<decltype(args)>(args)...); };
  auto value = co_await Run::pass(run.given, begin);
  if (!value) { co_return std::nullopt; }
  run.value.emplace(std::move(*value));
  co_return step_outcome::done;
}
template<class Async, class Core, class Run>
asio::awaitable<std::optional<step_outcome>> take_once(Async& self, run_attempt<Core, Run>& attempt) {
  return detail::take_run_awaited(self, attempt.run(), attempt.place.attempt);
}

/// Calls a step function, awaited. Returns an empty value if it was cancelled.
template<class Async, class Core, class Call>
asio::awaitable<std::optional<step_outcome>> take_once(Async& self, step_fn_attempt<Core, Call>& attempt) {
  std::exception_ptr failure;
  try {
    auto theirs = attempt.call()();
    co_await self.await_user(std::move(theirs));
  } catch (...) { failure = std::current_exception(); }
  self.throw_if_abandoned();
  const bool is_cancelled = co_await detail::is_cancelled_by(failure);
  if (is_cancelled) { co_return std::nullopt; }
  if (failure) { std::rethrow_exception(failure); }
  co_return step_outcome::done;
}

/// The awaited form of `attempt.take()`. @errors Those of `take`; `cancelled` if it was cancelled before the step was done.
/// @lifetime All arguments must outlive it.
template<class Async, class Attempt>
asio::awaitable<void> take_awaited(Async& self, Attempt& attempt) {
  std::optional<step_outcome> end;
  std::exception_ptr failure;
  try {
    end = co_await detail::take_once(self, attempt);
  } catch (...) { failure = std::current_exception(); }
  self.throw_if_abandoned();
  if (!failure && !end) { throw cancelled(); }
  attempt.conclude([&] {
    if (failure) { std::rethrow_exception(failure); }
    return *end;
  });
}

/// The attempt of an operation without a step.
struct no_attempt {
  static constexpr bool is_awaited = false;
};

/// True if the last argument of an asynchronous run is a completion token: the step does not take it, but it takes the others, or the type of
/// the last one is that of a token. (Otherwise one of the arguments is wrong.)
template<class Raw, class... Args>
class ends_with_token {
  using last = std::tuple_element_t<sizeof...(Args), std::tuple<void, Args...>>;
  template<std::size_t... I>
  static constexpr bool taken(std::index_sequence<I...>) {
    return Raw::template takes<std::tuple_element_t<I, std::tuple<Args...>>...>;
  }
  template<std::size_t... I>
  static constexpr bool others_taken(std::index_sequence<I...>) {
    return taken(places_for_step<std::tuple_element_t<I, std::tuple<Args...>>...>());
  }
  static constexpr bool is_token() { return boost::asio::completion_token_for<last, void(std::exception_ptr, typename Raw::result_type)>; }
  static constexpr bool look() {
    if constexpr (sizeof...(Args) == 0) {
      return false;
    } else if constexpr (is_for_caller<std::remove_cvref_t<last>>) {
      return false;
    } else if constexpr (has_takes<Raw>) {
      return !taken(places_for_step<Args...>()) && (is_token() || others_taken(std::make_index_sequence<sizeof...(Args) - 1>()));
    } else {
      return is_token();
    }
  }

public:
  static constexpr bool value = look();
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell::detail
