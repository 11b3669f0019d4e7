// SPDX-License-Identifier: Apache-2.0
//
// A static set of hooks, sorted by phase at compile time. A point that a hook lacks generates no code.
#pragma once

#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/protocol/detail/run_trace.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_request.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {
namespace detail {

/// Returns the order of hooks: by phase, and within a phase in the order in which they were given.
template<class... Held>
constexpr auto order_by_phase() {
  std::array<std::size_t, sizeof...(Held)> order{};
  constexpr std::array<hook_phase, sizeof...(Held)> phases{phase_of<detail::hook_type_of<Held>>()...};
  std::size_t next = 0;
  for (const auto phase : {hook_phase::observe, hook_phase::user, hook_phase::guard, hook_phase::average, hook_phase::persist}) {
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (phases[i] == phase) { order[next++] = i; }
    }
  }
  return order;
}

template<class Held>
concept conditional_hook = requires(const Held& held) {
  { detail::hook_access<Held>::is_active(held) } -> std::same_as<bool>;
};

template<class Hook, class Raw>
concept requests_options = requires { requires request_of<Hook, Raw>::has_options; };

/// The request of a hook that may be inactive or not take part in the run; it is then empty.
template<class Request>
struct conditional_request {
  using pack_type = typename Request::pack_type;
  static constexpr bool has_options = Request::has_options;
  std::optional<Request> all;

  constexpr const pack_type* pack() const noexcept { return all ? all->pack() : nullptr; }
  constexpr auto feeds() const { return all ? all->feeds() : decltype(all->feeds()){}; }
  constexpr auto options() const noexcept
    requires Request::has_options
  {
    return all ? all->options() : nullptr;
  }
};

}  // namespace detail

/// The hooks of one session over `Raw`.
template<class Raw, class... Held>
class hook_set {
  static constexpr auto order = detail::order_by_phase<Held...>();
  static constexpr auto indices = std::index_sequence_for<Held...>{};

  template<std::size_t I>
  using held_at = std::tuple_element_t<order[I], std::tuple<Held...>>;
  template<std::size_t I>
  using hook_at = detail::hook_type_of<held_at<I>>;
  template<class Point, std::size_t I>
  static constexpr bool has = Point::template is_in<hook_at<I>, Raw>;

public:
  explicit hook_set(Held... given) : hook_set({static_cast<void*>(std::addressof(given))...}, indices) {}

  /// Returns true if a hook may request options of a run, and thus a trace. If not, only runs whose caller passes options contain code for
  /// tracing.
  static consteval bool may_trace() { return (detail::requests_options<detail::hook_type_of<Held>, Raw> || ...); }
  /// Returns true if `before_run` of a hook may use the group of the session.
  static consteval bool may_use_group_before_run() { return (detail::may_use_group_before_run<detail::hook_type_of<Held>, Raw> || ...); }
  /// Returns the first hook of type `Hook`, in the order of calls.
  template<class Hook>
  [[nodiscard]] Hook& get() {
    constexpr std::size_t found = index_of<Hook>(indices);
    static_assert(found < sizeof...(Held), "stepwell: this session has no hook of that type");
    return at<found>();
  }

  /// Calls `Point` of all hooks that have it, a point outside of runs.
  template<class Point, class... Args>
  void call(Args&... arguments) {
    each([&]<std::size_t I>() {
      if constexpr (has<Point, I>) { this->template call_at<Point, I>(arguments...); }
    });
  }

  /// Calls `bool save_now(session&)` of all hooks that have it: a hook requests a save of the current state unless that is saved already.
  /// Returns true if one of the calls returned true.
  bool save_now(session_handle<Raw>& session) {
    bool is_any = false;
    each([&]<std::size_t I>() {
      if constexpr (requires(hook_at<I>& hook) {
                      { hook.save_now(session) } -> std::same_as<bool>;
                    }) {
        is_any = this->template at<I>().save_now(session) || is_any;
      }
    });
    return is_any;
  }

  /// Calls `end` of all hooks, even if one of them throws. Adds exceptions to `failures`. @see D-20
  template<bool Traced = may_trace()>
  void end(session_handle<Raw>& session, detail::error_collector& failures) {
    each([&]<std::size_t I>() {
      if constexpr (has<detail::end_point, I>) {
        failures.attempt([&] { this->template call_at<detail::end_point, I, Traced>(session); });
      }
    });
  }

  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept {
    each([&]<std::size_t I>() {
      if constexpr (has<detail::on_error_point, I>) {
        detail::log_failure("ignored exception from a hook's on_error", [&] { this->template at<I>().on_error(context, failure); });
      }
    });
  }

  /// Calls `before_run` of the hooks. Returns their requests for the next run as a tuple, which has to be passed to `after_run`. `Traced`:
  /// the calls are recorded as spans if there is a recorder.
  template<class Choice = all_hooks, bool Traced = false>
  [[gnu::always_inline]] constexpr auto before_run(run_context<Raw>& context) {
    return ask_each<Choice, Traced>(context, indices);
  }

  template<class Choice = all_hooks, bool Traced = false, class Requests, class Outcome>
  [[gnu::always_inline]] constexpr void after_run(run_context<Raw>& context, const Requests& requests, const Raw& raw,
                                                  const Outcome& outcome, const run_info& how) {
    tell_each<Choice, Traced>(context, requests, raw, outcome, how, indices);
  }

  /// Returns the first call of a hook that has thrown since the previous call of this function. Empty if none has thrown.
  [[nodiscard]] detail::hook_call take_failed_call() noexcept { return std::exchange(failed_call_, {}); }

  /// Adds the variables of all stateful hooks.
  /// @errors `invalid_argument_error` if two hooks have the same name.
  void add_state_to(hook_states& all) {
    each([&]<std::size_t I>() { all.add(this->template at<I>()); });
  }
  /// Returns the variables of all stateful hooks, named `stepwell/hook/NAME/...`. @errors Like add_state_to().
  [[nodiscard]] variable_list state() {
    hook_states all;
    add_state_to(all);
    return std::move(all).variables();
  }

private:
  /// Moves the hooks into the set. `given`: the addresses of the hooks, in the order of `Held`.
  template<std::size_t... I>
  hook_set([[maybe_unused]] const std::array<void*, sizeof...(Held)>& given, std::index_sequence<I...>)
      : held_{{std::move(*static_cast<held_at<I>*>(given[order[I]]))}...} {
    (static_cast<void>(detail::checked_hook<Raw, hook_at<I>>{}), ...);
  }

  // Not a std::tuple, whose other features would increase the compile time of every program with a session.
  template<std::size_t I>
  struct place {
    held_at<I> held;
  };
  template<class Index>
  struct places_of;
  template<std::size_t... I>
  struct places_of<std::index_sequence<I...>> : place<I>... {};

  template<std::size_t I>
  constexpr hook_at<I>& at() noexcept {
    return detail::hook_access<held_at<I>>::get(static_cast<place<I>&>(held_).held);
  }
  template<std::size_t I>
  constexpr bool is_active() const noexcept {
    if constexpr (detail::conditional_hook<held_at<I>>) {
      return detail::hook_access<held_at<I>>::is_active(static_cast<const place<I>&>(held_).held);
    } else {
      return true;
    }
  }
  /// Calls `function` for each active hook, with the index of the hook as template argument.
  template<class Function>
  constexpr void each([[maybe_unused]] Function function) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((this->template is_active<I>() ? function.template operator()<I>() : void()), ...);
    }(indices);
  }

  /// The kind of the request of hook `I`, in a run with the hooks that `Choice` selects.
  template<std::size_t I, class Choice>
  struct request_kind {
    using wanted = detail::request_of<hook_at<I>, Raw>;
    static constexpr bool is_asked = has<detail::before_run_point, I> && Choice::template chooses<hook_at<I>>;
    static constexpr bool is_conditional = is_asked && detail::conditional_hook<held_at<I>>;
    using type =
        std::conditional_t<!is_asked, detail::no_request, std::conditional_t<is_conditional, detail::conditional_request<wanted>, wanted>>;
  };
  template<std::size_t I, class Choice>
  using request_at = typename request_kind<I, Choice>::type;

  // The following functions are called in every step. Lambdas in their place would not be inlined, and each hook would access its context
  // through four pointers.
  template<class Choice, bool Traced, std::size_t... I>
  [[gnu::always_inline]] constexpr auto ask_each(run_context<Raw>& context, std::index_sequence<I...>) {
    return std::tuple<request_at<I, Choice>...>{this->template ask<I, Choice, Traced>(context)...};  // braces: evaluated in order
  }
  template<std::size_t I, class Choice, bool Traced>
  [[gnu::always_inline]] constexpr request_at<I, Choice> ask(run_context<Raw>& context) {
    if constexpr (!request_kind<I, Choice>::is_asked) {
      return {};
    } else if constexpr (request_kind<I, Choice>::is_conditional) {
      if (!is_active<I>()) { return {}; }
      return {this->template ask_hook<I, Traced>(context)};
    } else {
      return this->template ask_hook<I, Traced>(context);
    }
  }

  template<class Choice, bool Traced, class Requests, class Outcome, std::size_t... I>
  [[gnu::always_inline]] constexpr void tell_each(run_context<Raw>& context, const Requests& requests, const Raw& raw,
                                                  const Outcome& outcome, const run_info& how, std::index_sequence<I...>) {
    (this->template tell<I, Choice, Traced>(context, std::get<I>(requests), raw, outcome, how), ...);
  }
  template<std::size_t I, class Choice, bool Traced, class Request, class Outcome>
  [[gnu::always_inline]] constexpr void tell(run_context<Raw>& context, const Request& request, const Raw& raw, const Outcome& outcome,
                                             const run_info& how) {
    if constexpr (has<detail::after_run_point, I> && Choice::template chooses<hook_at<I>>) {
      if (!is_active<I>()) { return; }
      const values_of<hook_at<I>, Raw> values(raw, outcome, request.pack(), how);
      static_assert(std::is_void_v<decltype(at<I>().after_run(context, values))>, "stepwell: after_run must return void");
      [[maybe_unused]] const auto part = detail::part_of_call<Traced, hook_at<I>, detail::after_run_point>(context.trace());
      noting_failure<I, detail::after_run_point>([&] { at<I>().after_run(context, values); });
    }
  }

  template<std::size_t I, bool Traced>
  constexpr detail::request_of<hook_at<I>, Raw> ask_hook(run_context<Raw>& context) {
    [[maybe_unused]] const auto part = detail::part_of_call<Traced, hook_at<I>, detail::before_run_point>(context.trace());
    return noting_failure<I, detail::before_run_point>([&]() -> detail::request_of<hook_at<I>, Raw> {
      if constexpr (std::is_void_v<decltype(at<I>().before_run(context))>) {
        at<I>().before_run(context);
        return {};
      } else {
        return detail::as_request(at<I>().before_run(context));
      }
    });
  }

  /// Calls `action`, the call `Point` of hook `I`. If it throws, keeps its name for `take_failed_call`.
  template<std::size_t I, class Point, class Action>
  [[gnu::always_inline]] constexpr decltype(auto) noting_failure(Action&& action) {
    try {
      return action();
    } catch (...) {
      detail::hook_call call;
      if constexpr (requires(hook_at<I>& hook) { hook.take_failed_call(); }) { call = at<I>().take_failed_call(); }  // a hook of several
      if (call.hook.empty()) { call = {type_name<hook_at<I>>(), Point::name}; }
      if (failed_call_.hook.empty()) { failed_call_ = call; }
      throw;
    }
  }

  /// Calls `Point`, a point outside of runs, of hook `I`. The call is recorded as a span if it is `end(session)`.
  template<class Point, std::size_t I, bool Traced = may_trace(), class... Args>
  void call_at(Args&... arguments) {
    if constexpr (Traced && std::is_same_v<Point, detail::end_point>) {
      [[maybe_unused]] const auto part = detail::part_of_call<true, hook_at<I>, Point>((arguments.trace(), ...));
      noting_failure<I, Point>([&] { Point::call(at<I>(), arguments...); });
    } else {
      noting_failure<I, Point>([&] { Point::call(at<I>(), arguments...); });
    }
  }

  template<class Hook, std::size_t... I>
  static constexpr std::size_t index_of(std::index_sequence<I...>) {
    std::size_t found = sizeof...(Held);
    ((found == sizeof...(Held) && std::is_same_v<Hook, hook_at<I>> ? void(found = I) : void()), ...);
    return found;
  }

  places_of<std::index_sequence_for<Held...>> held_;
  detail::hook_call failed_call_;
};

}  // namespace stepwell
