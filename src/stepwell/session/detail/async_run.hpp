// SPDX-License-Identifier: Apache-2.0
//
// One run of an asynchronous session: its stored arguments and its value.
#pragma once

#include "stepwell/hook/run_request.hpp"
#include "stepwell/session/detail/async_step.hpp"
#include "stepwell/session/detail/run_step.hpp"

#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// A run with stored arguments. `Args` as in `std::tuple<Args...>(std::forward<Args>(args)...)`: values, or references if the caller passed
/// lvalues.
template<class Choice, class Core, class... Args>
class async_run {
  using step_places = places_for_step<Args...>;
  using raw_type = std::remove_cvref_t<decltype(std::declval<Core&>().raw())>;

  template<std::size_t... I>
  static auto caller_in(const std::tuple<Args...>& given, std::index_sequence<I...>) {
    using type = caller_request<Choice, std::remove_cvref_t<std::tuple_element_t<I, std::tuple<Args...>>>...>;
    return type{{&std::as_const(std::get<I>(given))...}};
  }
  using caller_type = decltype(caller_in(std::declval<const std::tuple<Args...>&>(), places_for_caller<Args...>()));
  template<std::size_t... I>
  static constexpr bool may_repeat(std::index_sequence<I...>) {
    return is_repeatable<raw_type, std::remove_reference_t<std::tuple_element_t<I, std::tuple<Args...>>>...>();
  }

  template<std::size_t I>
  using given_at = std::conditional_t<may_repeat(step_places()), std::tuple_element_t<I, std::tuple<Args...>>&,
                                      std::tuple_element_t<I, std::tuple<Args...>>&&>;
  template<std::size_t... I>
  static constexpr bool is_awaited_in(std::index_sequence<I...>) {
    return is_awaited_step<raw_type, given_at<I>...>();
  }

public:
  /// True if it can be repeated with the same arguments.
  static constexpr bool repeats = may_repeat(step_places());

  explicit async_run(std::tuple<Args...> given) : given_(std::move(given)) {}

  step_outcome once(Core& core, int attempt) {
    taken_.reset();
    taken_.emplace(run_in(core, attempt, step_places()));
    return step_outcome::done;
  }
  /// Like `once`, but awaited. Returns an empty value if it was cancelled before the step was done.
  template<class Async>
  asio::awaitable<std::optional<step_outcome>> once_awaited(Async& self, int attempt) {
    taken_.reset();
    const auto asked = caller();
    auto begin = [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (repeats) {
        return detail::run_step_awaited(self, attempt, asked, std::get<I>(given_)...);
      } else {
        return detail::run_step_awaited(self, attempt, asked, std::get<I>(std::move(given_))...);
      }
    };
    auto taken = co_await begin(step_places());
    if (!taken) { co_return std::nullopt; }
    taken_.emplace(std::move(*taken));
    co_return step_outcome::done;
  }
  /// True if the model's step is awaited.
  static constexpr bool is_awaited = is_awaited_in(step_places());
  /// Returns the value of the run for its caller. @pre `once` or `once_awaited` has succeeded.
  auto value() { return result_for_caller<raw_type, caller_type>(std::move(*taken_)); }

private:
  [[nodiscard]] caller_type caller() const { return caller_in(given_, places_for_caller<Args...>()); }

  template<std::size_t... I>
  auto run_in(Core& core, int attempt, std::index_sequence<I...>) {
    const auto asked = caller();
    if constexpr (repeats) {
      return detail::run_step(core, attempt, asked, std::get<I>(given_)...);
    } else {
      return detail::run_step(core, attempt, asked, std::get<I>(std::move(given_))...);
    }
  }

  std::tuple<Args...> given_;
  std::optional<extracted<raw_type, caller_type>> taken_;
};

/// The value of a run for its caller.
template<class Run>
using value_of_run = decltype(std::declval<Run&>().value());

/// Does the run inline, without its boundary, unless it has to be awaited.
template<class Async, class Run>
[[gnu::noinline]] step_outcome take_run(Async& self, Run& run, int attempt) {
  return detail::classify_run<Run::repeats>(self.core(), [&] { return run.once(self.core(), attempt); });
}
template<class Async, class Run>
[[gnu::always_inline]] inline step_outcome try_run(Async& self, Run& run) {
  if constexpr (Run::is_awaited) {
    return step_outcome::not_taken;
  } else {
    if (self.core().must_await_hooks(1)) { return step_outcome::not_taken; }
    return detail::take_run(self, run, 1);
  }
}

/// A run as an attempt for the asynchronous driver. @see async_loop_attempt
template<class Async, class Run>
class async_run_attempt final : public step_attempt {
public:
  async_run_attempt(Async& self, Run& run, step_outcome so_far) : step_attempt(false, Run::repeats), self_(self), run_(run) {
    outcome = so_far;
  }

  void take() override {
    if constexpr (!Run::is_awaited) { outcome = detail::take_run(self_, run_, place.attempt); }
  }
  bool must_await() {
    const bool hooks_await = self_.core().must_await_hooks(place.attempt);
    return Run::is_awaited || hooks_await;
  }
  asio::awaitable<void> take_awaited() {
    if constexpr (Run::is_awaited || Async::core_type::awaits_hooks_in_runs()) {
      auto classify = [this](auto& report) { return detail::classify_run<Run::repeats>(self_.core(), report); };
      auto step = run_.once_awaited(self_, place.attempt);
      co_await detail::await_and_classify(self_, std::move(step), outcome, classify);
    }
    co_return;
  }

private:
  Async& self_;
  Run& run_;
};

/// True if the last argument of an asynchronous run is a completion token, that is, if the step does not take it.
template<class Raw, class... Args>
class ends_with_token {
  using last = std::tuple_element_t<sizeof...(Args), std::tuple<void, Args...>>;

  template<std::size_t... I>
  static constexpr bool taken(std::index_sequence<I...>) {
    return Raw::template takes<std::tuple_element_t<I, std::tuple<Args...>>...>;
  }
  static constexpr bool look() {
    if constexpr (sizeof...(Args) == 0) {
      return false;
    } else if constexpr (is_for_caller<std::remove_cvref_t<last>>) {
      return false;
    } else if constexpr (requires { Raw::template takes<>; }) {
      return !taken(places_for_step<Args...>());
    } else {
      return boost::asio::completion_token_for<last, void(std::exception_ptr, typename Raw::result_type)>;
    }
  }

public:
  static constexpr bool value = look();
};

}  // namespace stepwell::detail
