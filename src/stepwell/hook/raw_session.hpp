// SPDX-License-Identifier: Apache-2.0
//
// The concept of a raw session, which executes one step: model sessions and graph sessions.
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

/// A raw session runs fetches, and owns the variables and the global step. Required members:
///
/// * `run(request, args...)` does one step and returns an `outcome_type`: the result, and the global step before and after the run, so
///   that no hook needs an extra run. It throws the exception of the step; the global step is then unchanged. `request` is a `run_request`:
///   the merged request of the caller and the hooks. A session that computes values on demand enumerates its fetches and feeds.
/// * `global_step()` returns the current global step. Every hook may call it at any time, also after `close`: it is cheap and does not
///   throw.
/// * `read(outcome, fetch)` returns the value of a fetch, by reference if the value is stored in memory. Fetches come without display names.
/// * `variables()` returns everything that a checkpoint holds, including `global_step`. It is called anew each time; the result is never
///   cached. A variable that an older checkpoint may lack is `optional()`.
///
/// Optional members:
///
/// * `enter(request)`: its result is held from before the run until all hooks have read the values of the run.
/// * `feed(request)`: like `enter`, in runs with feeds: writes the fed values. Its result restores the previous values. A session whose
///   `run` reads the feeds declares `static constexpr bool reads_feeds = true` instead.
/// * `pull()` and `push()`: for variables that live elsewhere, such as in a graph or in another process. `pull` makes the values of
///   `variables()` current, and its result, if any, is held until they have been read: for a checkpoint, a snapshot, and the copy of the
///   initial state. `push` sends the values that were written to `variables()` by a restore. Both throw as `run` does. Without a pull,
///   `variables()` describes names, dtypes and shapes only.
/// * `using fetch_key = ...`: the type to which every fetch converts, such as `std::string`. `any_hook` adds the fetches of its hook to the
///   request as a list of keys.
/// * `exclusive()`: its result is held while the variables are read or written between two steps. `is_shared()`: true if other sessions
///   may step the same subject.
/// * `fence()`: an `update_fence&`, at which each run waits before it changes a variable that is not `early()`. `global_step` is early. A
///   run that did not wait does so at its end. Without a fence, a due snapshot is copied completely between two steps.
/// * `subject()`: the object with which the functions of a scaffold are called, if it is not the raw session.
/// * `close()`: called when the raw session is not needed any more, and at a recovery before its successor is created. It releases
///   everything that a successor needs. An exception is logged.
///
/// It is used by one thread at a time. Its address is fixed once a monitored session holds it.
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

/// True if `run` of `Raw` reads `order.feeds()` itself, declared by `static constexpr bool reads_feeds = true`. A run with feeds compiles
/// only over a raw session that has this constant, or a function `feed(order)`.
template<class Raw>
concept reads_feeds = requires { requires Raw::reads_feeds; };

namespace detail {

/// A raw session whose variables live elsewhere.
template<class Raw>
concept pulls_variables = requires(Raw& raw) { raw.pull(); };

/// Makes the values of `raw.variables()` current. The result must be held until they have been read.
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
/// Sends the values that were written to `raw.variables()`.
template<class Raw>
void push_variables(Raw& raw) {
  if constexpr (requires { raw.push(); }) { raw.push(); }
}

/// Returns true if other sessions may step the same subject. A step of `raw` may then block until they have finished.
template<class Raw>
[[nodiscard]] bool is_shared(const Raw& raw) {
  if constexpr (requires { raw.is_shared(); }) {
    return raw.is_shared();
  } else {
    return false;
  }
}

/// Returns the object with which the functions of a scaffold are called: a model, a graph, or the raw session itself if it has neither.
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

/// Returns the fence at which the runs of `raw` wait before they change variables. Null if there is none, if other sessions step the same
/// subject, or if the variables live elsewhere.
template<class Raw>
[[nodiscard]] update_fence* fence_of(Raw& raw) {
  if constexpr (requires { raw.fence(); } && !pulls_variables<Raw>) {
    return is_shared(raw) ? nullptr : std::addressof(raw.fence());
  } else {
    return nullptr;
  }
}

/// Returns a lock. While it is held, no other session steps or restores the subject of `raw`.
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
