// SPDX-License-Identifier: Apache-2.0
//
// The concept of a raw session: the part of a session that executes the steps, while the other part calls hooks and saves checkpoints.
// Model sessions and graph sessions are raw sessions.
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

/// A raw session executes steps, returns the values of fetches (values of a step that a hook or the caller requests), and has the variables
/// and the global step. The object that is trained, such as a model, is its subject. Required members:
///
/// * `run(request, args...)` does one step and returns an `outcome_type`: the result, and the global step before and after the run. No hook
///   then needs an extra run to read the global step. `run` throws the exception of the step; the global step is then unchanged. `request`
///   is a `run_request`: the merged request of the caller and the hooks. A raw session that computes values on demand enumerates the
///   fetches and feeds of `request`.
/// * `global_step()` returns the current global step. It must be cheap and must not throw, because every hook may call it at any time, also
///   after `close`.
/// * `read(outcome, fetch)` returns the value of a fetch: as a reference if an object stores the value, by value if `read` computes it. If
///   the caller or hook gave the fetch a display name with `tag`, the name was removed before this call.
/// * `variables()` returns references to all variables that a checkpoint must contain, including `global_step`. The monitored session calls
///   it anew for each use and never caches the result. If older checkpoints may lack a variable, mark the variable with
///   `variable_ref::optional()`.
///
/// Optional members:
///
/// * `enter(request)`: called before each run. The monitored session holds the returned object until all hooks have read the values of the
///   run.
/// * `feed(request)`: called before each run with feeds. It writes the fed values. The returned object is held as long as that of `enter`;
///   its destructor restores the previous values. A raw session whose `run` reads the feeds has no `feed`, but declares `static constexpr
///   bool reads_feeds = true`.
/// * `pull()` and `push()`: for variables that are not in the memory of the model, but for example in a graph or in another process. `pull`
///   makes the values of `variables()` current. It is called before the values are read for a checkpoint, a snapshot or the copy of the
///   initial state. If it returns an object, the object is held until the values have been read. Before a `pull`, only the names, dtypes
///   and shapes of `variables()` are valid. `push` is called after a restore has written values to `variables()`, and sends these values.
///   Both may throw the same exceptions as `run`.
/// * `using fetch_key = ...`: a type to which every fetch converts, such as `std::string`. `any_hook` needs it to add the fetches of its
///   hook to the request, as a list of keys.
/// * `exclusive()`: returns an object that is held while the variables are read or written between two steps. `is_shared()`: returns true
///   if other sessions may step the same subject.
/// * `fence()`: returns an `update_fence&`. A snapshot that is due after a run may then be copied while the next run computes. Variables
///   marked with `variable_ref::early()` are copied before that run begins; `global_step` must be one of them. `run` must call `wait` of
///   the fence, which blocks until the copy is complete, before it changes any other variable. If it changes none, it must call `wait`
///   before it returns. Without a fence, the next run begins only when the snapshot is copied completely.
/// * `subject()`: returns the object with which the functions of a scaffold are called, such as the model. Without it, they are called with
///   the raw session.
/// * `close()`: called when the raw session is not needed any more, and at a recovery before the next raw session is created. It must
///   release everything that the next one needs. An exception of `close` is logged.
///
/// One thread at a time uses a raw session. When a monitored session holds it, its address does not change any more.
template<class Raw>
concept raw_session = std::move_constructible<Raw> && requires(Raw& raw, const Raw& constant) {
  typename Raw::result_type;
  typename Raw::outcome_type;
  { constant.global_step() } -> std::convertible_to<std::int64_t>;
  { raw.variables() } -> std::same_as<variable_list>;
};

/// A fetch that `Raw` supports.
template<class Projection, class Raw>
concept fetch_of =
    requires(const Raw& raw, const typename Raw::outcome_type& outcome, const Projection& projection) { raw.read(outcome, projection); };

/// True if `run` of `Raw` reads the feeds of its request. The raw session declares it by `static constexpr bool reads_feeds = true`. A run
/// with feeds compiles only if the raw session has this constant or a function `feed(request)`.
template<class Raw>
concept reads_feeds = requires { requires Raw::reads_feeds; };

namespace detail {

/// A raw session whose variables are not in the memory of the model, so that their values must be pulled before they are read.
template<class Raw>
concept pulls_variables = requires(Raw& raw) { raw.pull(); };

/// Makes the values of `raw.variables()` current. The caller must hold the returned object until it has read the values.
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

/// Returns the fence at which the runs of `raw` wait before they change variables. Returns null if `raw` has no fence, if other sessions
/// may step the same subject, or if `raw` pulls its variables.
template<class Raw>
[[nodiscard]] update_fence* fence_of(Raw& raw) {
  if constexpr (requires { raw.fence(); } && !pulls_variables<Raw>) {
    return is_shared(raw) ? nullptr : std::addressof(raw.fence());
  } else {
    return nullptr;
  }
}

/// Returns a lock. While the caller holds the lock, no other session steps or restores the subject of `raw`.
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
