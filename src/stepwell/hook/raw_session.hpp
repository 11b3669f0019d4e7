// SPDX-License-Identifier: Apache-2.0
//
// The concept of a raw session. A monitored session consists of two parts: the raw session executes the steps; the other part calls hooks
// and saves checkpoints. Model sessions and graph sessions are raw sessions.
#pragma once

#include "stepwell/base/variable.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace stepwell {

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
/// Optional members:
///
/// * `enter(request)`: called before each run. The monitored session holds the returned object until all hooks and the caller have read the
///   values of the run.
/// * `feed(request)`: called before each run with feeds. `feed` writes the fed values and returns an object, whose destructor restores the
///   previous values. The monitored session holds this object as long as the object that `enter` returned. A raw session whose `run` reads
///   the feeds has no `feed`, but declares `static constexpr bool reads_feeds = true`.
/// * `pull()` and `push()`: for variables that `variables()` cannot refer to directly, because they are for example in a graph, on a device
///   or in another process. `variables()` then refers to copies of these variables. `pull` copies the current values to `variables()`.
///   `pull` is called before the values are read for a checkpoint, a snapshot or the copy of the initial state, and before only some of the
///   variables are restored. If `pull` returns an object, this object is held until the values have been read. Before a `pull`, only the
///   names, dtypes and shapes of `variables()` are valid. `push` sends all values of `variables()`; it is called after a restore has
///   written to `variables()`. `pull` and `push` may throw the same exceptions as `run`.
/// * `using fetch_key = ...`: a type to which every fetch converts, such as `std::string`. `any_hook` (a type-erased hook) uses this type
///   to add the fetches of the hook that it contains to the request, as a list of keys.
/// * `exclusive()`: returns a lock. The monitored session holds this lock while it reads or writes the variables between two steps.
///   `is_shared()`: returns true if other sessions may step the same subject.
/// * `fence()`: returns an `update_fence&`. If a snapshot for a checkpoint is due after a run, it is then copied while the next run
///   computes. Variables marked with `variable_ref::early()` are copied before the next run begins; `global_step` must be one of these
///   early variables. `run` must call `wait` of the fence before it changes a variable that is not early; `wait` blocks until the copy is
///   complete. In any case, `run` must call `wait` before it returns. Without a fence, the next run begins only when the snapshot is copied
///   completely. A fence is not used if the raw session has `pull`, or while `is_shared()` returns true.
/// * `subject()`: returns the object that the functions of a scaffold receive, such as the model. If there is no `subject`, these functions
///   receive the raw session itself.
/// * `close()`: called when the raw session is not needed any more. If a creator makes the raw sessions, `close` is also called in a
///   recovery, before the next raw session is created; it must release everything that the next raw session needs. An exception of `close`
///   is logged.
///
/// One thread at a time uses a raw session. After a raw session was moved into a monitored session, its address does not change any more.
template<class Raw>
concept raw_session = std::move_constructible<Raw> && requires(Raw& raw, const Raw& constant) {
  typename Raw::result_type;
  typename Raw::outcome_type;
  { constant.global_step() } -> std::convertible_to<std::int64_t>;
  { raw.variables() } -> std::same_as<variable_list>;
};

/// True if `run` of `Raw` reads the feeds of its request. The raw session declares this with `static constexpr bool reads_feeds = true`. A
/// run with feeds compiles only if the raw session has either this constant or a function `feed(request)`.
template<class Raw>
concept reads_feeds = requires { requires Raw::reads_feeds; };

namespace detail {

/// A raw session with a function `pull`, which copies the current values to `variables()`. It must be called before these values are read.
template<class Raw>
concept pulls_variables = requires(Raw& raw) { raw.pull(); };

/// Makes the values of `raw.variables()` current. Does nothing if `raw` has no `pull`. The caller must hold the returned object until it
/// has read the values.
template<class Raw>
[[nodiscard]] auto pull_variables(Raw& raw) {
  if constexpr (!pulls_variables<Raw>) {
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
  if constexpr (requires { raw.push(); }) { raw.push(); }
}

/// Returns true if other sessions may step the same subject. A step of `raw` may then block until a step of another session has finished.
template<class Raw>
[[nodiscard]] bool is_shared(const Raw& raw) {
  if constexpr (requires { raw.is_shared(); }) {
    return raw.is_shared();
  } else {
    return false;
  }
}

/// Returns the object with which the functions of a scaffold are called: `raw.subject()`, such as a model or a graph, or `raw` itself if it
/// has no `subject()`.
template<class Raw>
[[nodiscard]] auto& subject_in_raw(Raw& raw) noexcept {
  if constexpr (requires { raw.subject(); }) {
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
  if constexpr (requires { raw.fence(); } && !pulls_variables<Raw>) {
    return is_shared(raw) ? nullptr : std::addressof(raw.fence());
  } else {
    return nullptr;
  }
}

/// Returns a lock: the result of `raw.exclusive()`, if there is such a function. While the caller holds the lock, no other session steps or
/// restores the subject of `raw`.
template<class Raw>
[[nodiscard]] auto alone_with(Raw& raw) {
  if constexpr (requires { raw.exclusive(); }) {
    return raw.exclusive();
  } else {
    return 0;
  }
}

}  // namespace detail
}  // namespace stepwell
