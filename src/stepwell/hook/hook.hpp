// SPDX-License-Identifier: Apache-2.0
//
// Hooks: a hook is any movable type with at least one hook point. The points are found at compile time.
//
// A point other than `on_error` may return an `asio::awaitable` of its usual return type. Such a hook works in asynchronous sessions only
// (async_session.hpp).
#pragma once

#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/hook/run_args.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/hook/stateful_hook.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <concepts>
#include <exception>
#include <type_traits>
#include <utility>

namespace stepwell {

/// The phase of a hook decides when it is called relative to others. It is a property of the hook's type:
/// `static constexpr auto phase = hook_phase::guard;`. Within a phase, hooks keep the order in which they were given. The order is the same
/// at every point.
enum class hook_phase {
  observe,  ///< Counters and summaries.
  user,     ///< The default: all other hooks.
  guard,    ///< Detects bad states; runs before anything is saved.
  average,  ///< Keeps averages of the variables.
  persist,  ///< Saves checkpoints.
};

/// Called once, before the session exists.
template<class Hook>
concept begin_hook = requires(Hook& hook) { hook.begin(); };

/// Called after every creation of the session: after the first, and after each recovery. May request a stop.
template<class Hook, class Raw>
concept after_create_session_hook =
    requires(Hook& hook, session_handle<Raw>& session, coordinator& threads) { hook.after_create_session(session, threads); };

/// Called before each run. Returns the hook's request for the run: void, a fetch pack, `run_args`, or a `std::optional` of those.
template<class Hook, class Raw>
concept before_run_hook = requires(Hook& hook, run_context<Raw>& context) { hook.before_run(context); };

/// Returns true if a hook with an awaitable `before_run` or `after_run` takes part in the next run. If it returns false, neither of the two
/// is called, and the step need not suspend for them. It must be cheap and free of side effects. It may be called more than once before a
/// run.
template<class Hook, class Raw>
concept wants_hook = requires(Hook& hook, run_context<Raw>& context) {
  { hook.wants(context) } noexcept -> std::convertible_to<bool>;
};

/// Notified of each failed run and of the error that ends a session (null if C++ cannot identify the error). It only observes: an exception
/// that it throws is logged.
template<class Hook, class Raw>
concept on_error_hook = requires(Hook& hook, run_context<Raw>& context, std::exception_ptr failure) { hook.on_error(context, failure); };

/// Called once, at a clean close.
template<class Hook, class Raw>
concept end_hook = requires(Hook& hook, session_handle<Raw>& session) { hook.end(session); };

namespace detail {

template<class Hook, class Raw>
constexpr auto request_type_of() {
  if constexpr (before_run_hook<Hook, Raw>) {
    using returned = coro::once_awaited_t<decltype(std::declval<Hook&>().before_run(std::declval<run_context<Raw>&>()))>;
    if constexpr (std::is_void_v<returned>) {
      return std::type_identity<no_request>{};
    } else if constexpr (run_request<returned>) {
      return std::type_identity<decltype(detail::as_request(std::declval<returned>()))>{};
    } else {
      return std::type_identity<void>{};
    }
  } else {
    return std::type_identity<no_request>{};
  }
}

/// The request of `Hook` for one run, in the form that the session uses. Void if `before_run` returns an unsupported type.
template<class Hook, class Raw>
using request_of = typename decltype(request_type_of<Hook, Raw>())::type;

template<class Request, class Raw>
struct values_for {
  using type = run_values<Raw, typename Raw::outcome_type, typename Request::pack_type>;
};
template<class Raw>
struct values_for<void, Raw> {
  using type = void;
};

}  // namespace detail

/// The type of `values` in `after_run(context, values)` of this hook.
template<class Hook, class Raw>
using values_of = typename detail::values_for<detail::request_of<Hook, Raw>, Raw>::type;

/// Notified of each completed run, with exactly the values that its `before_run` requested.
/// Called once for each successful run, on the session's thread, never after `end`. All hooks are called, even if an earlier hook requested
/// a stop.
template<class Hook, class Raw>
concept after_run_hook =
    requires(Hook& hook, run_context<Raw>& context, const values_of<Hook, Raw>& values) { hook.after_run(context, values); };

namespace detail {

// `spells_NAME` detects whether a class declares a member with this name in any form. Inheriting the name from two bases makes it
// ambiguous, which detects templates, overloads and private members too. A final class cannot be a base: there, only one plain function is
// detected.
struct has_begin {
  int begin;
};
struct has_after_create_session {
  int after_create_session;
};
struct has_before_run {
  int before_run;
};
struct has_after_run {
  int after_run;
};
struct has_on_error {
  int on_error;
};
struct has_end {
  int end;
};
struct has_wants {
  int wants;
};

template<class Hook, class Name>
struct both : Hook, Name {};

template<class Hook>
constexpr bool spells_begin() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_begin>::begin; };
  } else {
    return requires { &Hook::begin; };
  }
}
template<class Hook>
constexpr bool spells_after_create_session() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_after_create_session>::after_create_session; };
  } else {
    return requires { &Hook::after_create_session; };
  }
}
template<class Hook>
constexpr bool spells_before_run() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_before_run>::before_run; };
  } else {
    return requires { &Hook::before_run; };
  }
}
template<class Hook>
constexpr bool spells_after_run() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_after_run>::after_run; };
  } else {
    return requires { &Hook::after_run; };
  }
}
template<class Hook>
constexpr bool spells_on_error() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_on_error>::on_error; };
  } else {
    return requires { &Hook::on_error; };
  }
}
template<class Hook>
constexpr bool spells_end() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_end>::end; };
  } else {
    return requires { &Hook::end; };
  }
}

template<class Hook>
constexpr bool spells_wants() {
  if constexpr (std::is_class_v<Hook> && !std::is_final_v<Hook>) {
    return !requires { &both<Hook, has_wants>::wants; };
  } else {
    return requires { &Hook::wants; };
  }
}

/// The points of a hook that return an awaitable.
template<class Raw, class Hook>
struct awaited_points {
  static constexpr bool begin = requires(Hook& hook) {
    { hook.begin() } -> coro::awaited;
  };
  static constexpr bool after_create_session = requires(Hook& hook, session_handle<Raw>& session, coordinator& threads) {
    { hook.after_create_session(session, threads) } -> coro::awaited;
  };
  static constexpr bool before_run = requires(Hook& hook, run_context<Raw>& context) {
    { hook.before_run(context) } -> coro::awaited;
  };
  static constexpr bool after_run = requires(Hook& hook, run_context<Raw>& context, const values_of<Hook, Raw>& values) {
    { hook.after_run(context, values) } -> coro::awaited;
  };
  static constexpr bool on_error = requires(Hook& hook, run_context<Raw>& context, std::exception_ptr failure) {
    { hook.on_error(context, failure) } -> coro::awaited;
  };
  static constexpr bool end = requires(Hook& hook, session_handle<Raw>& session) {
    { hook.end(session) } -> coro::awaited;
  };

  static constexpr bool run = before_run || after_run;
  static constexpr bool any = begin || after_create_session || run || end;
};

/// The points that one hook type has on one raw session, and whether each declared point can be called.
template<class Raw, class Hook>
struct hook_on {
  static constexpr bool has_begin = begin_hook<Hook>;
  static constexpr bool has_after_create_session = after_create_session_hook<Hook, Raw>;
  static constexpr bool has_before_run = before_run_hook<Hook, Raw>;
  static constexpr bool has_after_run = after_run_hook<Hook, Raw>;
  static constexpr bool has_on_error = on_error_hook<Hook, Raw>;
  static constexpr bool has_end = end_hook<Hook, Raw>;
  static constexpr bool has_any = has_begin || has_after_create_session || has_before_run || has_after_run || has_on_error || has_end;

  template<bool Has, auto Spells>
  static constexpr bool fine() {
    if constexpr (Has) {
      return true;
    } else {
      return !Spells();
    }
  }
  static constexpr bool begin_fine = fine<has_begin, [] { return spells_begin<Hook>(); }>();
  static constexpr bool after_create_session_fine = fine<has_after_create_session, [] { return spells_after_create_session<Hook>(); }>();
  static constexpr bool before_run_fine = fine<has_before_run, [] { return spells_before_run<Hook>(); }>();
  static constexpr bool fetches_fine = !std::is_void_v<request_of<Hook, Raw>>;
  static constexpr bool after_run_fine = fine<has_after_run, [] { return spells_after_run<Hook>(); }>();
  static constexpr bool on_error_fine = fine<has_on_error, [] { return spells_on_error<Hook>(); }>();
  static constexpr bool end_fine = fine<has_end, [] { return spells_end<Hook>(); }>();
  static constexpr bool wants_fine = !awaited_points<Raw, Hook>::run || fine<wants_hook<Hook, Raw>, [] { return spells_wants<Hook>(); }>();
  static constexpr bool errors_at_once = !awaited_points<Raw, Hook>::on_error;
  static constexpr bool state_fine = names_its_state<Hook>;

  static constexpr bool is_hook = std::move_constructible<Hook> && has_any && begin_fine && after_create_session_fine && before_run_fine &&
                                  fetches_fine && after_run_fine && on_error_fine && end_fine && wants_fine && errors_at_once && state_fine;
};

/// The checks of one hook type, instantiated for each hook of a session. An invalid hook fails to compile with a message that names the
/// hook and the expected signature.
template<class Raw, class Hook>
struct checked_hook : hook_on<Raw, Hook> {
  using on = hook_on<Raw, Hook>;
  static_assert(std::move_constructible<Hook>, "stepwell: a hook must be movable");
  static_assert(on::begin_fine, "stepwell: begin exists but cannot be called as begin()");
  static_assert(on::after_create_session_fine,
                "stepwell: after_create_session exists but cannot be called as after_create_session(session&, coordinator&)");
  static_assert(on::before_run_fine, "stepwell: before_run exists but cannot be called as before_run(run_context&)");
  static_assert(on::fetches_fine, "stepwell: before_run must return void, fetch(...), run_args{fetch(...)}, or a std::optional of those");
  static_assert(on::after_run_fine, "stepwell: after_run exists but cannot be called as after_run(run_context&, const values&)");
  static_assert(on::on_error_fine, "stepwell: on_error exists but cannot be called as on_error(run_context&, std::exception_ptr)");
  static_assert(on::end_fine, "stepwell: end exists but cannot be called as end(session&)");
  static_assert(on::wants_fine, "stepwell: wants exists but cannot be called as bool wants(run_context&) noexcept");
  static_assert(on::errors_at_once, "stepwell: on_error only observes, and cannot be awaited");
  static_assert(on::state_fine,
                "stepwell: this hook has variables() but no name to save them under; give it `static constexpr auto state_name = \"...\"`");
  static_assert(on::has_any,
                "stepwell: this is not a hook: it has none of begin, after_create_session, before_run, "
                "after_run, on_error, end");
};

}  // namespace detail

/// A type that can observe sessions over `Raw`.
template<class Hook, class Raw>
concept hook = detail::hook_on<Raw, Hook>::is_hook;

/// Returns the phase of a hook type.
template<class Hook>
[[nodiscard]] constexpr hook_phase phase_of() noexcept {
  if constexpr (requires {
                  { Hook::phase } -> std::convertible_to<hook_phase>;
                }) {
    return Hook::phase;
  } else {
    return hook_phase::user;
  }
}

}  // namespace stepwell
