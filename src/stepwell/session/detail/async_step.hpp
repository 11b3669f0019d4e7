// SPDX-License-Identifier: Apache-2.0
//
// A step in which the model is awaited, in a loop, a run and a step function.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/run_step.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <cstdint>
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

/// Like `run_step`, but the action `run` is awaited, with the members of the raw session that take its place; see `has_awaits`.
/// @errors Those of `run_step`; `cancelled` if it was cancelled before the step was done.
/// @lifetime All arguments must outlive it.
template<class Async, class Caller, class... Args>
auto run_step_awaited(Async& self, const int& attempt, const Caller& caller, Args&&... args)
    -> asio::awaitable<extracted<typename Async::core_type::raw_type, Caller>> {
  using core_type = typename Async::core_type;
  using raw_type = typename core_type::raw_type;
  using scope_type = run_scope<core_type, Caller>;
  auto& core = self.core();
  auto& raw = core.raw();
  auto stage = step_stage::before_run;
  std::optional<extracted<raw_type, Caller>> value;
  std::exception_ptr failure;
  try {
    if (detail::is_shared(raw)) {
      throw invalid_argument_error("an awaited step cannot run on a shared master: it would block the event loops of the other sessions");
    }
    scope_type scope(core, attempt);
    std::optional<decltype(detail::begin_run(core, scope, caller))> order;
    auto before = [&] { order.emplace(detail::begin_run(core, scope, caller)); };
    co_await self.run_on(self.place_of_steps(), before);
    stage = step_stage::run;
    const auto held = detail::hold_in_run(raw, *order);
    std::optional<typename raw_type::result_type> result;
    auto fed = raw.fed(*order, std::forward<Args>(args)...);
    const auto step_before = raw.global_step();
    {
      [[maybe_unused]] const awaited_part<scope_type::traced> part(scope.context.trace(), "run", "session");
      auto step = detail::result_into(result, raw.step(fed));
      co_await self.await_user(std::move(step));
    }
    auto outcome = raw.count(step_before, std::move(*result));
    stage = step_stage::after_run;
    auto after = [&] { value.emplace(detail::end_run(core, scope, *order, held, outcome, caller)); };
    co_await self.run_on(self.place_of_steps(), after);
  } catch (...) { failure = std::current_exception(); }
  if (!failure) { co_return std::move(*value); }
  self.throw_if_abandoned();
  const bool is_cancelled = co_await detail::is_cancelled_by(failure);
  if (stage == step_stage::run && is_cancelled) {
    core.cancel_run();
    throw cancelled();
  }
  core.on_failure(stage, failure, attempt);
  std::rethrow_exception(failure);
}

/// Like `take_step`, without the classification of failures. `work` is that of a loop or of a run.
template<class Async, class Work>
asio::awaitable<step_outcome> take_work_awaited(Async& self, const Work& work) {
  auto& core = self.core();
  decltype(work.begin(core)) given = nullptr;
  auto begin = [&] { given = work.begin(core); };
  co_await self.run_on(self.place_of_steps(), begin);
  if (given == nullptr) { co_return step_outcome::out_of_data; }
  [[maybe_unused]] const auto shown = work.show(core);
  auto run = [&](auto&&... args) {
    return detail::run_step_awaited(self, work.place.attempt, work.caller, std::forward<decltype(args)>(args)...);
  };
  auto value = co_await work.pass(given, run);
  work.keep(core, value);
  co_return step_outcome::done;
}
/// Calls a step function, awaited.
template<class Async, class Core, class Call>
asio::awaitable<step_outcome> take_work_awaited(Async& self, step_fn_attempt<Core, Call>& attempt) {
  std::exception_ptr failure;
  try {
    auto theirs = attempt.call()();
    co_await self.await_user(std::move(theirs));
  } catch (...) { failure = std::current_exception(); }
  self.throw_if_abandoned();
  const bool is_cancelled = co_await detail::is_cancelled_by(failure);
  if (is_cancelled) { throw cancelled(); }
  if (failure) { std::rethrow_exception(failure); }
  co_return step_outcome::done;
}

/// The awaited form of `attempt.take()`. @errors Those of `take`; `cancelled` if it was cancelled before the step was done.
/// @lifetime All arguments must outlive it.
template<class Async, class Attempt>
asio::awaitable<void> take_awaited(Async& self, Attempt& attempt) {
  std::exception_ptr failure;
  bool is_cancelled = false;
  try {
    decltype(auto) work = attempt.work();
    attempt.outcome = co_await detail::take_work_awaited(self, work);
  } catch (const cancelled&) { is_cancelled = true; } catch (...) {
    failure = std::current_exception();
  }
  self.throw_if_abandoned();
  if (is_cancelled) { throw cancelled(); }
  if (!failure) { co_return; }
  try {
    std::rethrow_exception(failure);
  } catch (...) { attempt.outcome = attempt.work().outcome_of_failure(self.core()); }
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
