// SPDX-License-Identifier: Apache-2.0
//
// One awaited run: what it was given, kept in its frame, and what came of it.
#pragma once

#include "stepwell/session/run_order.hpp"
#include "stepwell/session/step_driver.hpp"

#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// `Args` as in `std::tuple<Args...>(std::forward<Args>(args)...)`: values, or references where the caller gave an lvalue.
template<class Choice, class Core, class... Args>
class async_run {
  using step_places = places_for_step<Args...>;
  using raw_type = std::remove_cvref_t<decltype(std::declval<Core&>().raw())>;

  template<std::size_t... I>
  static auto caller_in(const std::tuple<Args...>& given, std::index_sequence<I...>) {
    using caller_type = caller_request<Choice, std::remove_cvref_t<std::tuple_element_t<I, std::tuple<Args...>>>...>;
    return caller_type{{&std::as_const(std::get<I>(given))...}};
  }
  template<std::size_t... I>
  static constexpr bool may_repeat(std::index_sequence<I...>) {
    return is_repeatable<raw_type, std::remove_reference_t<std::tuple_element_t<I, std::tuple<Args...>>>...>();
  }

public:
  /// Whether it can be done again with the same arguments.
  static constexpr bool repeats = may_repeat(step_places());

  explicit async_run(std::tuple<Args...> given) : given_(std::move(given)) {}

  step_end once(Core& core, int attempt) {
    outcome_.reset();
    outcome_.emplace(run_in(core, attempt, step_places()));
    return step_end::done;
  }
  /// @pre `once` has succeeded.
  auto value() {
    using caller_type = decltype(caller_in(given_, places_for_caller<Args...>()));
    if constexpr (std::is_void_v<typename caller_type::pack_type>) { return typename raw_type::result_type(std::move(outcome_->result)); }
    else { return std::move(*outcome_); }
  }

private:
  template<std::size_t... I>
  auto run_in(Core& core, int attempt, std::index_sequence<I...>) {
    const auto asked = caller_in(given_, places_for_caller<Args...>());
    if constexpr (repeats) { return run_step(core, attempt, asked, std::get<I>(given_)...); }
    else { return run_step(core, attempt, asked, std::get<I>(std::move(given_))...); }
  }

  template<std::size_t... I>
  static auto outcome_of(std::index_sequence<I...>)
      -> decltype(run_step(std::declval<Core&>(), 1, caller_in(std::declval<std::tuple<Args...>&>(), places_for_caller<Args...>()),
                           std::get<I>(std::declval<std::conditional_t<repeats, std::tuple<Args...>&, std::tuple<Args...>>>())...));

  std::tuple<Args...>                                   given_;
  std::optional<decltype(outcome_of(step_places()))> outcome_;
};

/// What the caller of a run gets.
template<class Run>
using value_of_run = decltype(std::declval<Run&>().value());

/// Whether the last of the arguments of an awaited run says how to complete: one that the step does not take.
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
