// SPDX-License-Identifier: Apache-2.0
//
// What one step runs on: the concept behind model sessions and graph sessions.
#pragma once

#include "stepwell/base/variable.hpp"

#include <concepts>
#include <cstdint>
#include <utility>

namespace stepwell {

/// The end of one raw run.
template<class Result>
struct run_outcome {
  Result result;
  std::int64_t step_before;
  std::int64_t step_after;
};

/// Runs fetches, owns the variables and the global step.
///
/// * `run(requests, args...)` does one step and returns an `outcome_type`: the result, and the global step before and
///   after, so that no hook needs an extra run. It throws what the step throws and then adds nothing to the step.
///   `requests` is a tuple of what caller and hooks asked for; a session that computes on demand reads it.
/// * `global_step()` is where it stands; asked for at any time, by every hook: cheap, and it does not throw.
/// * `read(outcome, fetch)` is the value of a fetch, by reference where it names memory.
/// * `variables()` is everything a checkpoint holds, `global_step` included; asked for anew each time, never cached.
/// * Used by one thread at a time; its address is fixed once a monitored session holds it.
template<class Raw>
concept raw_session = std::move_constructible<Raw> && requires(Raw& raw, const Raw& constant) {
  typename Raw::result_type;
  typename Raw::outcome_type;
  { constant.global_step() } -> std::convertible_to<std::int64_t>;
  { raw.variables() } -> std::same_as<variable_list>;
};

/// A value that `Raw` can fetch.
template<class Projection, class Raw>
concept fetch_of =
    requires(const Raw& raw, const typename Raw::outcome_type& outcome, const Projection& projection) { raw.read(outcome, projection); };

/// True if `run` of `Raw` reads `order.feeds()` itself, which `static constexpr bool reads_feeds = true` declares. A run with
/// feeds compiles only over a raw session that has this, or `feed(order)`.
template<class Raw>
concept reads_feeds = requires { requires Raw::reads_feeds; };

/// Whether others step the same: then a step of `raw` may wait for them.
template<class Raw>
[[nodiscard]] bool is_seated(const Raw& raw) {
  if constexpr (requires { raw.is_seated(); }) {
    return raw.is_seated();
  } else {
    return false;
  }
}

/// Nobody else steps or restores what `raw` stands on while the value returned is held.
template<class Raw>
[[nodiscard]] auto alone_with(Raw& raw) {
  if constexpr (requires { raw.exclusive(); }) {
    return raw.exclusive();
  } else {
    return 0;
  }
}

}  // namespace stepwell
