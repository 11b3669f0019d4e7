// SPDX-License-Identifier: Apache-2.0
//
// Raw sessions. A monitored session consists of two parts: the raw session executes the steps; the other part calls hooks and saves
// checkpoints. This header has the table of all members that the library looks for in a raw session.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/protocol/detail/declares.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

class session_signals;
class update_fence;

/// The result of one raw run, and the global step before and after it.
template<class Result>
struct run_outcome {
  Result result;
  std::int64_t step_before;
  std::int64_t step_after;
};

/// A raw session executes steps, and has the variables and the global step. It returns the values of fetches, that is, the values of a step
/// that a hook or the caller requests. The object that a raw session trains, such as a model, is the subject of the raw session. Required
/// members:
///
/// * `result_type`: the type of the result of a step. `outcome_type`: `run_outcome<result_type>`, or a type with the same three members and
///   further members that `read` needs.
/// * `run(request, args...)` does one step and returns an `outcome_type`: the result, and the global step before and after the run. A hook
///   therefore needs no extra run to read the global step. If the step throws, `run` throws the same exception and leaves the global step
///   unchanged. `request` is a `run_request`: the merged requests of the caller and the hooks. A raw session that computes values only on
///   demand enumerates the fetches and feeds of `request`.
/// * `global_step()` returns the current global step. It must be cheap and must not throw, because every hook may call it at any time, even
///   after `close`.
/// * `read(outcome, fetch)` returns the value of a fetch. It returns a reference if an object stores the value, and returns by value if
///   `read` computes the value. If the caller or a hook gave the fetch a display name with `tag`, `fetch` is the fetch without this name.
/// * `variables()` returns references to all variables that a checkpoint must contain, including `global_step`. The monitored session calls
///   `variables` anew for each use and never caches the result. If older checkpoints may lack a variable, mark the variable with
///   `variable_ref::optional()`.
///
/// The optional members are in the table below. A member that has one of these names, but cannot be used as the table says, does not
/// compile; neither does a member whose partner is missing, such as `pull` without `push`.
///
/// One thread at a time uses a raw session. After a raw session was moved into a monitored session, its address does not change any more.
template<class Raw>
concept raw_session = std::move_constructible<Raw> && requires(Raw& raw, const Raw& constant) {
  typename Raw::result_type;
  typename Raw::outcome_type;
  { constant.global_step() } -> std::convertible_to<std::int64_t>;
  { raw.variables() } -> std::same_as<variable_list>;
};

namespace detail {

template<class T>
concept lvalue = std::is_lvalue_reference_v<T>;

/// True if each run of `Raw` increases its global step by 1.
template<class Raw>
inline constexpr bool counts_each_run = false;

/// True if `raw.read(outcome, fetch)` compiles.
template<class Raw, class Outcome, class Fetch>
concept can_read = requires(const Raw& raw, const Outcome& outcome, const Fetch& fetch) { raw.read(outcome, fetch); };

/// The optional member that is declared in a line of this file. A test walks the table with it.
template<int Line>
struct optional_member;

// STEPWELL_OPTIONAL_MEMBER(NAME, "DECLARATION", USE) defines `has_NAME<Raw>`: true if USE compiles. If it does not compile, but `Raw`
// declares the name, the compiler reports an error. `args` are the arguments of a call whose types depend on the run.
#define STEPWELL_OPTIONAL_MEMBER(NAME, DECLARATION, ...)                                                       \
  STEPWELL_DECLARES(NAME)                                                                                      \
  template<class Raw, class... Args>                                                                           \
  consteval bool look_for_##NAME() {                                                                           \
    if constexpr (requires(Raw& raw, const Raw& constant, Args&... args) { __VA_ARGS__ }) {                    \
      return true;                                                                                             \
    } else {                                                                                                   \
      static_assert(!declares_##NAME<Raw>(), "stepwell: " #NAME " exists but cannot be used as " DECLARATION); \
      return false;                                                                                            \
    }                                                                                                          \
  }                                                                                                            \
  template<class Raw, class... Args>                                                                           \
  inline constexpr bool has_##NAME = look_for_##NAME<Raw, Args...>();                                          \
  template<>                                                                                                   \
  struct optional_member<__LINE__> {                                                                           \
    static constexpr const char* name = #NAME;                                                                 \
    template<class Raw>                                                                                        \
    static constexpr bool is_in = has_##NAME<Raw, const int>;                                                  \
  }

// ---- The table of the optional members. The page "Write your own raw session" has the same table; tests/hygiene/raw_session.sh writes it.

// Called before each run. The session holds the returned object until all hooks and the caller have read the values of the run.
// Without it: nothing is held during a run.
STEPWELL_OPTIONAL_MEMBER(enter, "auto enter(const auto& request)", raw.enter(args...););

// Called before each run with feeds. Writes the fed values and returns an object whose destructor restores the previous values. The session
// holds this object as long as that of `enter`. Without it: a run with feeds compiles only if `reads_feeds` is true.
STEPWELL_OPTIONAL_MEMBER(feed, "auto feed(const auto& request)", raw.feed(args...););

// True if `run` reads the feeds of its request. Without it: false.
STEPWELL_OPTIONAL_MEMBER(reads_feeds, "static constexpr bool reads_feeds", typename std::bool_constant<Raw::reads_feeds>;);

// True if `run` accepts arguments of these types. With it, the session detects that `run` accepts an argument only as an rvalue, and does
// not repeat such a run after a failure. Without it: every run is repeated.
STEPWELL_OPTIONAL_MEMBER(takes, "template<class... Args> static constexpr bool takes", typename std::bool_constant<Raw::template takes<>>;);

// True if a step with these arguments is awaited. An asynchronous session then does the step in three parts instead of `run`: `fed(request,
// args...)` returns a tuple of the arguments, `step(tuple)` returns the awaitable of the result, and `count(step_before, result)` returns
// the outcome. Without it: no step is awaited.
STEPWELL_OPTIONAL_MEMBER(awaits, "template<class... Args> static constexpr bool awaits",
                         typename std::bool_constant<Raw::template awaits<>>;);

// A type to which every fetch converts, such as `std::string`. `any_hook` (a type-erased hook) adds the fetches of its hook to the request
// as a list of such keys. Without it: the request lacks these fetches, and `read` still returns their values.
STEPWELL_OPTIONAL_MEMBER(fetch_key, "using fetch_key = TYPE", typename Raw::fetch_key;);

// Called before the values of `variables()` are read for a checkpoint, a snapshot or the copy of the initial state, and before only some of
// the variables are restored. Copies the current values to the memory to which `variables()` refers, from a device or another process. The
// session holds the returned object, if there is one, until it has read the values. Before the call, only the names, dtypes and shapes of
// `variables()` are valid. May throw the same exceptions as `run`. Without it: `variables()` refers to the variables themselves.
STEPWELL_OPTIONAL_MEMBER(pull, "auto pull()", raw.pull(););

// Called after a restore has written to `variables()`. Sends all of these values to where the variables are. May throw the same exceptions
// as `run`. `pull` and `push` need each other. Without it: a restore writes to the variables themselves.
STEPWELL_OPTIONAL_MEMBER(push, "void push()", raw.push(););

// Called if a snapshot for a checkpoint is due after a run. The snapshot is then copied while the next run computes. Also called after a
// failed run and at the end of the session, to wait for this copy. Variables marked with `variable_ref::early()` are copied before the next
// run begins; `global_step` must be one of them. `run` must call `wait` of the fence before it changes a variable that is not early, and in
// any case before it returns; `wait` blocks until the copy is complete. Not called if there is a `pull`, or while `is_shared()` returns
// true. Without it: the next run begins when the snapshot is complete.
STEPWELL_OPTIONAL_MEMBER(fence, "update_fence& fence()", { raw.fence() } -> std::same_as<update_fence&>;);

// Called for hooks and for the functions of a scaffold that need the trained object, such as a model. Returns a reference to this object.
// Without it: they get the raw session itself.
STEPWELL_OPTIONAL_MEMBER(subject, "auto& subject()", { raw.subject() } -> lvalue;);

// Called when the raw session is not needed any more: at the end of the monitored session and, if a creator makes the raw sessions, in a
// recovery, before the next raw session is created. It must release everything that the next one needs. An exception is logged. Without
// it: the destructor releases everything.
STEPWELL_OPTIONAL_MEMBER(close, "void close()", raw.close(););

// ---- Further optional members, if several sessions step the same subject.

// Returns true if other sessions may step the same subject. A step may then block until a step of another session has finished. Needs
// `exclusive`. Without it: false.
STEPWELL_OPTIONAL_MEMBER(is_shared, "bool is_shared() const", { constant.is_shared() } -> std::convertible_to<bool>;);

// Called before the session or a hook reads or writes the subject between two steps. Returns a lock, which is held until this access has
// ended. Without it: nothing is locked.
STEPWELL_OPTIONAL_MEMBER(exclusive, "auto exclusive()", raw.exclusive(););

// Returns the global step, including the steps of other sessions, if the count is in another process. May throw the same exceptions as
// `run`. `global_step_waiter_hook` calls it. Without it: `global_step()` is used.
STEPWELL_OPTIONAL_MEMBER(read_global_step, "std::int64_t read_global_step()",
                         { raw.read_global_step() } -> std::convertible_to<std::int64_t>;);

// Called when a chief is prepared. Calls `make_ready()` while no other session uses the subject. If `make_ready` returns true, workers that
// wait for the chief continue. Returns the global step. Without it: `make_ready` is called.
STEPWELL_OPTIONAL_MEMBER(prepare_as_chief, "std::int64_t prepare_as_chief(function_ref<bool()> make_ready)",
                         { raw.prepare_as_chief(std::declval<function_ref<bool()>>()) } -> std::convertible_to<std::int64_t>;);

// Returns true if the chief has made the subject ready. Without it: true.
STEPWELL_OPTIONAL_MEMBER(is_chief_ready, "bool is_chief_ready() const", { constant.is_chief_ready() } -> std::convertible_to<bool>;);

// Called by a worker while `is_chief_ready()` returns false. Blocks until the chief is ready, at most until `until`. Returns false if
// `until` was reached first, or if a stop or an interruption in `signals` ended the wait. Needs `is_chief_ready`. Without it: the worker
// polls.
STEPWELL_OPTIONAL_MEMBER(wait_for_chief, "bool wait_for_chief(session_signals& signals, clock& time, clock::time_point until)", {
  raw.wait_for_chief(std::declval<session_signals&>(), std::declval<clock&>(), std::declval<clock::time_point>())
} -> std::convertible_to<bool>;);

// Called when a worker has found the subject ready, while the lock of `exclusive` is held. Without it: nothing is called.
STEPWELL_OPTIONAL_MEMBER(join, "void join()", raw.join(););

// ---- Optional members of the subject. The defaults of a scaffold call them.

// Called if no checkpoint was restored. Initialises the variables. Without it: the variables keep their values.
STEPWELL_OPTIONAL_MEMBER(init_variables, "void init_variables()", raw.init_variables(););

// Called after each creation of the raw session. Initialises the state that belongs to one session only. Without it: nothing is called.
STEPWELL_OPTIONAL_MEMBER(init_local_variables, "void init_local_variables()", raw.init_local_variables(););

// Returns the names of the uninitialised variables among those that checkpoints contain. Without it: all of them count as initialised.
STEPWELL_OPTIONAL_MEMBER(uninitialized_variables, "std::vector<std::string> uninitialized_variables() const",
                         { constant.uninitialized_variables() } -> std::same_as<std::vector<std::string>>;);

// Returns the names of the uninitialised variables among those that checkpoints do not contain. Without it: all of them count as
// initialised.
STEPWELL_OPTIONAL_MEMBER(uninitialized_local_variables, "std::vector<std::string> uninitialized_local_variables() const",
                         { constant.uninitialized_local_variables() } -> std::same_as<std::vector<std::string>>;);

#undef STEPWELL_OPTIONAL_MEMBER

// ---- end of the table

STEPWELL_DECLARES(fed)
STEPWELL_DECLARES(step)
STEPWELL_DECLARES(count)

/// Always true. The compiler instantiates the checks of the members when it evaluates the arguments.
template<bool... Has>
inline constexpr bool are_usable = true;

/// The checks of a raw session, instantiated for each session over `Raw`. (`enter` and `feed` are checked when a run is compiled.)
template<class Raw>
struct checked_raw_session {
  static_assert(are_usable<has_reads_feeds<Raw>, has_takes<Raw>, has_fetch_key<Raw>, has_fence<Raw>, has_subject<Raw>, has_close<Raw>,
                           has_exclusive<Raw>, has_read_global_step<Raw>, has_prepare_as_chief<Raw>, has_join<Raw>>);
  static_assert(has_pull<Raw> == has_push<Raw>, "stepwell: a raw session with pull needs push, and one with push needs pull");
  static_assert(!has_is_shared<Raw> || has_exclusive<Raw>, "stepwell: a raw session with is_shared needs exclusive");
  static_assert(!has_wait_for_chief<Raw> || has_is_chief_ready<Raw>, "stepwell: a raw session with wait_for_chief needs is_chief_ready");
  static_assert(!has_awaits<Raw> || (declares_fed<Raw>() && declares_step<Raw>() && declares_count<Raw>()),
                "stepwell: a raw session with awaits needs fed, step and count");
};

/// Makes the values of `raw.variables()` current. Does nothing if `raw` has no `pull`. The caller must hold the returned object until it
/// has read the values.
template<class Raw>
[[nodiscard]] auto pull_variables(Raw& raw) {
  if constexpr (!has_pull<Raw>) {
    return 0;
  } else if constexpr (std::is_void_v<decltype(raw.pull())>) {
    return raw.pull(), 0;
  } else {
    return raw.pull();
  }
}
/// Sends the values that were written to `raw.variables()`. Does nothing if `raw` has no `push`.
template<class Raw>
void push_variables(Raw& raw) {
  if constexpr (has_push<Raw>) { raw.push(); }
}

/// Returns true if other sessions may step the same subject. A step of `raw` may then block until a step of another session has finished.
template<class Raw>
[[nodiscard]] bool is_shared(const Raw& raw) {
  if constexpr (has_is_shared<Raw>) {
    return raw.is_shared();
  } else {
    return false;
  }
}

/// Returns the trained object: `raw.subject()`, or `raw` itself if it has no `subject()`.
template<class Raw>
[[nodiscard]] auto& subject_in_raw(Raw& raw) noexcept {
  if constexpr (has_subject<Raw>) {
    return raw.subject();
  } else {
    return raw;
  }
}
template<class Raw>
using subject_of = std::remove_reference_t<decltype(detail::subject_in_raw(std::declval<Raw&>()))>;

/// Returns the fence at which a run of `raw` waits before it changes variables that are being copied. Returns null if `raw` has no fence,
/// if other sessions may step the same subject, or if `raw` has a function `pull`.
template<class Raw>
[[nodiscard]] update_fence* fence_of(Raw& raw) {
  if constexpr (has_fence<Raw> && !has_pull<Raw>) {
    return is_shared(raw) ? nullptr : std::addressof(raw.fence());
  } else {
    return nullptr;
  }
}

/// Returns a lock: the result of `raw.exclusive()`, if there is such a function. While the caller holds the lock, no other session steps or
/// restores the subject of `raw`.
template<class Raw>
[[nodiscard]] auto alone_with(Raw& raw) {
  if constexpr (has_exclusive<Raw>) {
    return raw.exclusive();
  } else {
    return 0;
  }
}

}  // namespace detail
}  // namespace stepwell
