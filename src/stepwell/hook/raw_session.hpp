// SPDX-License-Identifier: Apache-2.0
//
// The concept of a raw session, which executes one step: model sessions and graph sessions.
#pragma once

#include "stepwell/base/variable.hpp"

#include <concepts>
#include <cstdint>
#include <utility>

namespace stepwell {

/// The result of one raw run, and the global step before and after it.
template<class Result>
struct run_outcome {
  Result result;
  std::int64_t step_before;
  std::int64_t step_after;
};

/// A raw session runs fetches, and owns the variables and the global step.
///
/// * `run(requests, args...)` does one step and returns an `outcome_type`: the result, and the global step before and after the run, so
///   that no hook needs an extra run. It throws the exception of the step; the global step is then unchanged. `requests` is a tuple of the
///   requests of the caller and the hooks; a session that computes on demand reads it.
/// * `global_step()` returns the current global step. Every hook may call it at any time: it is cheap and does not throw.
/// * `read(outcome, fetch)` returns the value of a fetch, by reference if the value is stored in memory.
/// * `variables()` returns everything that a checkpoint holds, including `global_step`. It is called anew each time; the result is never
///   cached.
/// * It is used by one thread at a time. Its address is fixed once a monitored session holds it.
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

/// Returns true if other sessions may step the same subject. A step of `raw` may then block until they have finished.
template<class Raw>
[[nodiscard]] bool is_shared(const Raw& raw) {
  if constexpr (requires { raw.is_shared(); }) {
    return raw.is_shared();
  } else {
    return false;
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

}  // namespace stepwell
