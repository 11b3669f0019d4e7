// SPDX-License-Identifier: Apache-2.0
//
// A static set of hooks, sorted by phase at compile time. A point that a hook lacks generates no code. Awaitable points are called by
// `awaited_hooks`.
#pragma once

#include "stepwell/hook/detail/error_collector.hpp"
#include "stepwell/hook/detail/run_trace.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/run_request.hpp"
#include "stepwell/hook/stateful_hook.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Access to the hook in an element of a hook set: the element itself, or the object to which a wrapper refers. A specialisation may
/// declare `is_active(held)`: the hook is then called only while that returns true.
template<class Held>
struct hook_access {
  using hook_type = Held;
  static constexpr Held& get(Held& held) noexcept { return held; }
};
template<class Hook>
struct hook_access<std::reference_wrapper<Hook>> {
  using hook_type = Hook;
  static constexpr Hook& get(std::reference_wrapper<Hook> held) noexcept { return held.get(); }
};
template<class Held>
using hook_type_of = typename hook_access<Held>::hook_type;

namespace detail {

/// Returns the order of hooks: by phase, and within a phase in the order in which they were given.
template<class... Held>
constexpr auto order_by_phase() {
  std::array<std::size_t, sizeof...(Held)> order{};
  constexpr std::array<hook_phase, sizeof...(Held)> phases{phase_of<hook_type_of<Held>>()...};
  std::size_t next = 0;
  for (const auto phase : {hook_phase::observe, hook_phase::user, hook_phase::guard, hook_phase::average, hook_phase::persist}) {
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (phases[i] == phase) { order[next++] = i; }
    }
  }
  return order;
}

}  // namespace detail

namespace detail {

template<class Held>
concept conditional_hook = requires(const Held& held) {
  { hook_access<Held>::is_active(held) } -> std::same_as<bool>;
};

template<class Raw, class Held>
concept awaited_in_runs = awaited_points<Raw, hook_type_of<Held>>::run;

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

template<class Raw, class... Held>
class awaited_hooks;

}  // namespace detail

/// The hooks of one session over `Raw`.
template<class Raw, class... Held>
class hook_set {
  static constexpr auto order = detail::order_by_phase<Held...>();
  static constexpr auto indices = std::index_sequence_for<Held...>{};

  template<std::size_t I>
  using held_at = std::tuple_element_t<order[I], std::tuple<Held...>>;
  template<std::size_t I>
  using hook_at = hook_type_of<held_at<I>>;
  template<std::size_t I>
  using on = detail::checked_hook<Raw, hook_at<I>>;
  template<std::size_t I>
  using awaited_at = detail::awaited_points<Raw, hook_at<I>>;
  friend class detail::awaited_hooks<Raw, Held...>;

public:
  explicit hook_set(Held... given) : hook_set({static_cast<void*>(std::addressof(given))...}, indices) {}

  static constexpr std::size_t size() noexcept { return sizeof...(Held); }

  /// Returns true if a hook may request options of a run, and thus a trace. If not, only runs whose caller passes options contain code for
  /// tracing.
  static consteval bool may_trace() {
    return []<std::size_t... I>(std::index_sequence<I...>) { return (hook_set::may_ask_for_options<I>() || ...); }(indices);
  }

  /// Returns true if a point of a hook is awaitable. Such a set works in asynchronous sessions only.
  static consteval bool awaits() { return (detail::awaited_points<Raw, hook_type_of<Held>>::any || ...); }
  /// Returns true if a hook has an awaitable point that is called in runs.
  static consteval bool awaits_in_runs() { return (detail::awaited_in_runs<Raw, Held> || ...); }
  /// Determines which hooks with awaitable points take part in the next run. Returns true if at least one does. Called before each run;
  /// until the first call none of them takes part.
  bool ask_whether_to_await([[maybe_unused]] run_context<Raw>& context) noexcept {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (static_cast<int>(this->template note_wish<I>(context)) | ... | 0) != 0;  // no short circuit: all hooks are called
    }(indices);
  }

  /// Returns the first hook of type `Hook`, in the order of calls.
  template<class Hook>
  [[nodiscard]] Hook& get() {
    constexpr std::size_t found = index_of<Hook>();
    static_assert(found < sizeof...(Held), "stepwell: this session has no hook of that type");
    return at<found>();
  }

  void begin() {
    each([]<std::size_t I>(hook_set& self) {
      if constexpr (on<I>::has_begin) { self.template at<I>().begin(); }
    });
  }

  void after_create_session(session_handle<Raw>& session, coordinator& threads) {
    each([&]<std::size_t I>(hook_set& self) {
      if constexpr (on<I>::has_after_create_session) { self.template at<I>().after_create_session(session, threads); }
    });
  }

  /// Calls `bool save_now(session&)` of all hooks that have it: a hook requests a save of the current state unless that is saved already.
  /// Returns true if one of the calls returned true.
  bool save_now(session_handle<Raw>& session) {
    bool is_any = false;
    each([&]<std::size_t I>(hook_set& self) {
      if constexpr (requires {
                      { self.template at<I>().save_now(session) } -> std::same_as<bool>;
                    }) {
        is_any = self.template at<I>().save_now(session) || is_any;
      }
    });
    return is_any;
  }

  /// Calls `end` of all hooks, even if one of them throws. Adds exceptions to `failures`. @see D-20
  void end(session_handle<Raw>& session, detail::error_collector& failures) {
    each([&]<std::size_t I>(hook_set& self) {
      if constexpr (on<I>::has_end) {
        failures.attempt([&] { self.template end_hook<I>(session); });
      }
    });
  }

  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept {
    each([&]<std::size_t I>(hook_set& self) {
      if constexpr (on<I>::has_on_error) {
        detail::log_failure("ignored exception from a hook's on_error", [&] { self.template at<I>().on_error(context, failure); });
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

  /// Returns the variables of all stateful hooks, named `stepwell/hook/NAME/...`.
  /// @errors `invalid_argument_error` if two hooks have the same name.
  [[nodiscard]] variable_list state() {
    hook_states all;
    each([&]<std::size_t I>(hook_set& self) { all.add(self.template at<I>()); });
    return std::move(all).variables();
  }

private:
  /// Moves the hooks into the set. `given`: the addresses of the hooks, in the order of `Held`.
  template<std::size_t... I>
  hook_set([[maybe_unused]] const std::array<void*, sizeof...(Held)>& given, std::index_sequence<I...>)
      : held_{{std::move(*static_cast<held_at<I>*>(given[order[I]]))}...} {
    (static_cast<void>(on<I>{}), ...);
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
  constexpr held_at<I>& held() noexcept {
    return static_cast<place<I>&>(held_).held;
  }
  template<std::size_t I>
  constexpr hook_at<I>& at() noexcept {
    return hook_access<held_at<I>>::get(held<I>());
  }

  template<class Function>
  constexpr void each(Function&& function) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (this->template call<I>(function), ...); }(indices);
  }
  template<std::size_t I, class Function>
  constexpr void call(Function&& function) {
    if (is_active<I>()) { function.template operator()<I>(*this); }
  }
  template<std::size_t I>
  constexpr bool is_active() const noexcept {
    if constexpr (detail::conditional_hook<held_at<I>>) {
      return hook_access<held_at<I>>::is_active(static_cast<const place<I>&>(held_).held);
    } else {
      return true;
    }
  }

  /// The kind of the request of hook `I`, in a run with the hooks that `Choice` selects.
  template<std::size_t I, class Choice>
  struct request_kind {
    using wanted = detail::request_of<hook_at<I>, Raw>;
    static constexpr bool is_asked = on<I>::has_before_run && Choice::template chooses<hook_at<I>>;
    static constexpr bool is_conditional = is_asked && (detail::conditional_hook<held_at<I>> || detail::awaited_in_runs<Raw, held_at<I>>);
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
    if constexpr (!request_kind<I, Choice>::is_asked || awaited_at<I>::run) {
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
    if constexpr (on<I>::has_after_run && Choice::template chooses<hook_at<I>> && !awaited_at<I>::run) {
      if (!is_active<I>()) { return; }
      const values_of<hook_at<I>, Raw> values(raw, outcome, request.pack(), how);
      static_assert(std::is_void_v<decltype(at<I>().after_run(context, values))>, "stepwell: after_run must return void");
      [[maybe_unused]] const detail::run_part<Traced> part(context.trace(), name_of<I, detail::hook_point::after_run>());
      at<I>().after_run(context, values);
    }
  }

  template<std::size_t I, bool Traced>
  constexpr detail::request_of<hook_at<I>, Raw> ask_hook(run_context<Raw>& context) {
    [[maybe_unused]] const detail::run_part<Traced> part(context.trace(), name_of<I, detail::hook_point::before_run>());
    if constexpr (std::is_void_v<decltype(at<I>().before_run(context))>) {
      at<I>().before_run(context);
      return {};
    } else {
      return detail::as_request(at<I>().before_run(context));
    }
  }

  template<std::size_t I>
  void end_hook(session_handle<Raw>& session) {
    [[maybe_unused]] const detail::run_part<may_trace()> part(session.trace(), name_of<I, detail::hook_point::end>());
    at<I>().end(session);
  }

  template<std::size_t I>
  bool note_wish([[maybe_unused]] run_context<Raw>& context) noexcept {
    if constexpr (!awaited_at<I>::run) {
      return false;
    } else {
      bool& is_wanted = wanted_[I];
      is_wanted = is_active<I>();
      if constexpr (wants_hook<hook_at<I>, Raw>) { is_wanted = is_wanted && at<I>().wants(context); }
      return is_wanted;
    }
  }

  template<std::size_t I>
  static consteval bool may_ask_for_options() {
    using wanted = detail::request_of<hook_at<I>, Raw>;
    if constexpr (std::is_void_v<wanted>) {
      return false;
    }  // rejected elsewhere, with a better message
    else {
      return wanted::has_options;
    }
  }
  template<std::size_t I, detail::hook_point Point>
  static constexpr std::string_view name_of() noexcept {
    return detail::name_of_call<hook_at<I>, Point>();
  }

  template<class Hook>
  static constexpr std::size_t index_of() {
    std::size_t found = sizeof...(Held);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((found == sizeof...(Held) && std::is_same_v<Hook, hook_at<I>> ? void(found = I) : void()), ...);
    }(indices);
    return found;
  }

  struct no_wishes {};
  using wishes = std::array<bool, sizeof...(Held)>;

  places_of<std::index_sequence_for<Held...>> held_;
  [[no_unique_address]] std::conditional_t<(detail::awaited_in_runs<Raw, Held> || ...), wishes, no_wishes>
      wanted_{};  // which awaitable hooks take part in this run
};

}  // namespace stepwell
