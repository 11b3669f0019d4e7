// SPDX-License-Identifier: Apache-2.0
//
// Hooks. A hook is any movable type with at least one hook point, which is a function that the session calls: `begin`,
// `after_create_session`, `before_run`, `after_run`, `on_error` or `end`. The points are found at compile time.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/protocol/detail/declares.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_args.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <concepts>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// The phase of a hook determines its place in the order of the hooks. A hook type declares its phase: `static constexpr auto phase =
/// hook_phase::guard;`. Hooks of one phase keep the order in which they were given. The order is the same at every point.
enum class hook_phase {
  observe,  ///< Hooks that count steps or write summaries.
  user,     ///< The default: all other hooks.
  guard,    ///< Hooks that detect bad states, such as a NaN, before these states are saved.
  average,  ///< Hooks that keep averages of the variables.
  persist,  ///< Hooks that save checkpoints.
};

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

/// A hook with the point `begin`, which is called once, at the start, before the raw session is made ready (created, and restored or
/// initialised).
template<class Hook, class /*Raw*/ = void>
concept begin_hook = requires(Hook& hook) { hook.begin(); };

/// A hook with the point `after_create_session`, which is called each time the raw session has been made ready: at the start, and in each
/// recovery. In this call, the hook may request a stop.
template<class Hook, class Raw>
concept after_create_session_hook =
    requires(Hook& hook, session_handle<Raw>& session, coordinator& threads) { hook.after_create_session(session, threads); };

/// A hook with the point `before_run`, which is called before each run. It returns void, or the request of the hook for the run: a
/// `fetch_pack` (from `fetch(...)`), `run_args`, or a `std::optional` of one of these.
template<class Hook, class Raw>
concept before_run_hook = requires(Hook& hook, run_context<Raw>& context) { hook.before_run(context); };

/// A hook with the point `on_error`, which is called for each failure of a run, of the source, of the work between two steps, of a thread
/// of the session, or of a recovery. It is not called for a failure before the first `after_create_session`. It is also called if an
/// exception of other code ends the session. If the session is destroyed because of an exception, `failure` is null, because C++ gives no
/// access to this exception. `on_error` only observes: exceptions that it throws are logged.
template<class Hook, class Raw>
concept on_error_hook = requires(Hook& hook, run_context<Raw>& context, std::exception_ptr failure) { hook.on_error(context, failure); };

/// A hook with the point `end`, which is called once, when the session is closed and no exception has ended it: by `close`, `async_close`,
/// `with`, or the destructor of a blocking session.
template<class Hook, class Raw>
concept end_hook = requires(Hook& hook, session_handle<Raw>& session) { hook.end(session); };

namespace detail {

template<class Hook, class Raw>
constexpr auto request_type_of() {
  if constexpr (before_run_hook<Hook, Raw>) {
    using returned = decltype(std::declval<Hook&>().before_run(std::declval<run_context<Raw>&>()));
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

/// The type of the request of `Hook` for one run, in the form that the session uses. Void if `before_run` returns an unsupported type.
template<class Hook, class Raw>
using request_of = typename decltype(request_type_of<Hook, Raw>())::type;

/// False if `before_run` of `Hook` does not use the group of the session, also not through functions of the user. The hooks of the library
/// declare this with their own type, `using requests_only = nan_tensor_hook`; a run is then cheaper. A derived hook does not inherit it.
template<class Hook, class Raw>
inline constexpr bool may_use_group_before_run =
    before_run_hook<Hook, Raw> && !requires { requires std::same_as<typename Hook::requests_only, Hook>; };

/// False if a session over `Raw` cannot read the fetches that `Hook` requests.
template<class Hook, class Raw>
constexpr bool reads_its_fetches() {
  if constexpr (std::is_void_v<request_of<Hook, Raw>>) {
    return true;  // another check fails
  } else {
    return can_read_all<Raw, typename request_of<Hook, Raw>::pack_type>;
  }
}

}  // namespace detail

/// The type of `values` in `after_run(context, values)` of this hook.
template<class Hook, class Raw>
using values_of = run_values<Raw, typename Raw::outcome_type, typename detail::request_of<Hook, Raw>::pack_type>;

/// A hook with the point `after_run`, which is called once for each successful run, on the session's thread, and never after `end`. The
/// hook gets exactly the values that its `before_run` requested. `after_run` is called even if an earlier hook requested a stop. It is not
/// called if `after_run` of an earlier hook has thrown.
template<class Hook, class Raw>
concept after_run_hook =
    requires(Hook& hook, run_context<Raw>& context, const values_of<Hook, Raw>& values) { hook.after_run(context, values); };

/// A hook with state that survives a restart. The hook lists its variables and has a name for its state. The variables are saved in
/// checkpoints, under names that begin with `stepwell/hook/NAME/`. NAME is the result of `state_name()` or, if there is no such function,
/// the constant `state_name`. If a checkpoint lacks the state, the hook keeps its current state, and a warning is logged.
/// @errors The construction of a session throws `invalid_argument_error` if two of its hooks have the same name.
template<class Hook>
concept stateful_hook = requires(Hook& hook) {
  { hook.variables() } -> std::same_as<variable_list>;
} && (requires(Hook& hook) { { hook.state_name() } -> std::convertible_to<std::string_view>; } ||
      requires { { Hook::state_name } -> std::convertible_to<std::string_view>; });

/// Returns the name under which the state of `hook` is saved.
template<stateful_hook Hook>
[[nodiscard]] std::string state_name_of(Hook& hook) {
  if constexpr (requires {
                  { hook.state_name() } -> std::convertible_to<std::string_view>;
                }) {
    return std::string(hook.state_name());
  } else {
    return std::string(Hook::state_name);
  }
}

/// The variables of several hooks, named `stepwell/hook/NAME/...`.
class hook_states {
public:
  hook_states();
  ~hook_states();
  hook_states(const hook_states&) = delete;
  hook_states& operator=(const hook_states&) = delete;

  /// Adds the variables of `hook` if the hook is stateful. If the hook holds other hooks, it has a function `add_state_to(hook_states&)`,
  /// which adds the variables of those hooks.
  /// @errors `invalid_argument_error` if two hooks share a name.
  template<class Hook>
  void add(Hook& hook) {
    if constexpr (requires { hook.add_state_to(*this); }) {
      hook.add_state_to(*this);
    } else if constexpr (stateful_hook<Hook>) {
      add(state_name_of(hook), hook.variables());
    }
  }
  [[nodiscard]] variable_list variables() && { return std::move(all_); }

private:
  void add(const std::string& name, const variable_list& own);

  variable_list all_;
  std::set<std::string> names_;
};

namespace detail {

// The table of the hook points: POINT(NAME, "signature in diagnostics", arguments of the call), with SEPARATOR between two points. The
// arguments are named as in STEPWELL_DEFINE_POINT. A new point needs a line here, and a concept NAME_hook above, which documents it.
#define STEPWELL_HOOK_POINTS(POINT, SEPARATOR)                                                            \
  POINT(begin, "begin()")                                                                                 \
  SEPARATOR POINT(after_create_session, "after_create_session(session&, coordinator&)", session, threads) \
  SEPARATOR POINT(before_run, "before_run(run_context&)", context)                                        \
  SEPARATOR POINT(after_run, "after_run(run_context&, const values&)", context, values)                   \
  SEPARATOR POINT(on_error, "on_error(run_context&, std::exception_ptr)", context, failure)               \
  SEPARATOR POINT(end, "end(session&)", session)

// NAME_point has constants (the hook has the point; the point is awaited) and the call of the point. `is_valid` is false if a hook declares
// the name, but the point cannot be called with the expected arguments.
#define STEPWELL_DEFINE_POINT(NAME, SIGNATURE, ...)                                                                                        \
  STEPWELL_DECLARES(NAME)                                                                                                                  \
  struct NAME##_point {                                                                                                                    \
    static constexpr std::string_view name = #NAME;                                                                                        \
    template<class Hook, class Raw>                                                                                                        \
    static constexpr bool is_in = NAME##_hook<Hook, Raw>;                                                                                  \
    template<class Hook, class Raw>                                                                                                        \
    static constexpr bool is_awaited = requires(Hook& hook, session_handle<Raw>& session, coordinator& threads, run_context<Raw>& context, \
                                                const values_of<Hook, Raw>& values, std::exception_ptr failure) {                          \
      { hook.NAME(__VA_ARGS__) } -> coro::awaited;                                                                                         \
    };                                                                                                                                     \
    template<class Hook, class Raw>                                                                                                        \
    static constexpr bool is_valid() {                                                                                                     \
      if constexpr (is_in<Hook, Raw>) {                                                                                                    \
        return true;                                                                                                                       \
      } else {                                                                                                                             \
        return !declares_##NAME<Hook>();                                                                                                   \
      }                                                                                                                                    \
    }                                                                                                                                      \
    static constexpr decltype(auto) call(auto& hook, auto&... arguments) { return hook.NAME(arguments...); }                               \
  }
STEPWELL_HOOK_POINTS(STEPWELL_DEFINE_POINT, ;);

#define STEPWELL_IS_IN(NAME, ...) NAME##_point::template is_in<Hook, Raw>
#define STEPWELL_IS_VALID(NAME, ...) NAME##_point::template is_valid<Hook, Raw>()
#define STEPWELL_IS_AWAITED(NAME, ...) NAME##_point::template is_awaited<Hook, Raw>
#define STEPWELL_CHECK(NAME, SIGNATURE, ...) \
  static_assert(STEPWELL_IS_VALID(NAME), "stepwell: " #NAME " exists but cannot be called as " SIGNATURE)
#define STEPWELL_NAME(NAME, ...) #NAME

template<class Hook, class Raw>
inline constexpr bool has_any_point = STEPWELL_HOOK_POINTS(STEPWELL_IS_IN, ||);
template<class Hook, class Raw>
inline constexpr bool has_every_point = STEPWELL_HOOK_POINTS(STEPWELL_IS_IN, &&);
template<class Hook, class Raw>
inline constexpr bool is_awaited = STEPWELL_HOOK_POINTS(STEPWELL_IS_AWAITED, ||);
template<class Hook, class Raw>
inline constexpr bool has_valid_points = STEPWELL_HOOK_POINTS(STEPWELL_IS_VALID, &&);

/// False if a hook lists variables without a name for its state. Such variables would silently not be saved.
template<class Hook>
concept names_its_state = stateful_hook<Hook> || !requires(Hook& hook) {
  { hook.variables() } -> std::same_as<variable_list>;
};

/// False if a hook requests values of a run, but has no `after_run` to receive them.
template<class Hook, class Raw>
constexpr bool receives_its_fetches() {
  if constexpr (std::is_void_v<request_of<Hook, Raw>> || after_run_hook<Hook, Raw>) {
    return true;
  } else {
    return std::is_same_v<typename request_of<Hook, Raw>::pack_type, fetch_pack<>> || declares_after_run<Hook>();
  }
}

/// The checks of one hook type, instantiated for each hook of a session. An invalid hook fails to compile with a message that names the
/// hook and the expected signature.
template<class Raw, class Hook>
struct checked_hook {
  static_assert(std::move_constructible<Hook>, "stepwell: a hook must be movable");
  static_assert(
      has_any_point<Hook, Raw> || !requires(Hook& pointer) { *pointer; },
      "stepwell: a hook was given by pointer; give the hook itself, or std::ref(hook), which does not copy it");
  static_assert(
      !is_awaited<Hook, Raw>,
      "stepwell: a hook point returns an awaitable, but hooks are not awaited; start the work with asio::co_spawn, and look at its "
      "outcome in a later call");
  static_assert(is_awaited<Hook, Raw> || !std::is_void_v<request_of<Hook, Raw>>,
                "stepwell: before_run must return void, fetch(...), run_args{fetch(...)}, or a std::optional of those");
  static_assert(
      reads_its_fetches<Hook, Raw>(),
      "stepwell: this session cannot read a value that this hook fetches; a model session reads members of the step's result and of "
      "the model, and callables that take one of them or both");
  static_assert(receives_its_fetches<Hook, Raw>(),
                "stepwell: before_run of this hook fetches values, but the hook has no after_run(run_context&, const values&) to receive "
                "them; is its name misspelt? A hook that only runs an operation of a graph has an empty after_run");
  STEPWELL_HOOK_POINTS(STEPWELL_CHECK, ;);
  static_assert(names_its_state<Hook>,
                "stepwell: this hook has variables() but no name to save them under; give it `static constexpr auto state_name = \"...\"`");
  static_assert(has_any_point<Hook, Raw>, "stepwell: this is not a hook: it has none of " STEPWELL_HOOK_POINTS(STEPWELL_NAME, ", "));
};

#undef STEPWELL_HOOK_POINTS
#undef STEPWELL_DEFINE_POINT
#undef STEPWELL_IS_IN
#undef STEPWELL_IS_VALID
#undef STEPWELL_IS_AWAITED
#undef STEPWELL_CHECK
#undef STEPWELL_NAME

}  // namespace detail

/// A type that is a valid hook for sessions with the raw session type `Raw`.
template<class Hook, class Raw>
concept hook = std::move_constructible<Hook> && detail::has_any_point<Hook, Raw> && detail::has_valid_points<Hook, Raw> &&
               !std::is_void_v<detail::request_of<Hook, Raw>> && !detail::is_awaited<Hook, Raw> && detail::names_its_state<Hook> &&
               detail::receives_its_fetches<Hook, Raw>();

/// A wrapper whose hook is called only if `is_active` is true. The phase of the wrapper is the phase of its hook.
/// @see contract CREATE-1, CREATE-7
template<class Hook>
struct chief_only_hook {
  Hook hook;
  bool is_active = true;
};

/// Several chief-only hooks, passed to `monitored_training_session` as one argument.
template<class... Hooks>
struct chief_only_hooks {
  std::tuple<chief_only_hook<Hooks>...> all;
};

/// Returns `hooks` as chief-only hooks: they are never called on a worker. Example: `monitored_training_session(model, options,
/// chief_only(hook, hook), hook)`.
template<class... Hooks>
[[nodiscard]] chief_only_hooks<Hooks...> chief_only(Hooks... hooks) {
  return {{chief_only_hook<Hooks>{std::move(hooks)}...}};
}

namespace detail {

/// Access to the hook of one element of a hook set. The element is the hook itself, a `std::reference_wrapper` of it, or a
/// `chief_only_hook` that contains it. A specialisation may declare `is_active(held)`: the hook is then called only while `is_active(held)`
/// returns true.
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

template<class Hook>
struct hook_access<chief_only_hook<Hook>> {
  using hook_type = hook_type_of<Hook>;
  static constexpr hook_type& get(chief_only_hook<Hook>& held) noexcept { return hook_access<Hook>::get(held.hook); }
  static constexpr bool is_active(const chief_only_hook<Hook>& held) noexcept { return held.is_active; }
};

/// True for a single hook, false for a pack of hooks.
template<class Held>
inline constexpr bool is_flat = true;
template<class... Hooks>
inline constexpr bool is_flat<chief_only_hooks<Hooks...>> = false;

template<class Held>
std::tuple<Held> flattened(Held&& hook, bool /*is_chief*/) {
  return std::tuple<Held>(std::forward<Held>(hook));
}
template<class... Hooks>
std::tuple<chief_only_hook<Hooks>...> flattened(chief_only_hooks<Hooks...>&& hooks, bool is_chief) {
  std::apply([is_chief](auto&... one) { ((one.is_active = is_chief), ...); }, hooks.all);
  return std::move(hooks.all);
}

}  // namespace detail
}  // namespace stepwell
