// SPDX-License-Identifier: Apache-2.0
//
// The metric of an evaluation, for hooks that take each result of it once.
#pragma once

#include "stepwell/protocol/detail/evaluated_value.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace stepwell::detail {

/// A metric of an evaluation, and the number of its results that a hook has taken.
class evaluation_watch {
public:
  explicit evaluation_watch(evaluated_value watched) : watched_(std::move(watched)) {}

  [[nodiscard]] const evaluated_value& metric() const noexcept { return watched_; }

  /// Begins or continues with a session. The results that are in effect count as taken, except one that the session has made for the
  /// restored state. `hook` is the name of the hook that watches.
  /// @errors `failed_precondition_error` if the session does not have the `evaluate_every` hook that measures the metric.
  void start(std::string_view hook) {
    watched_.check_is_measured(hook);
    taken_ = watched_.count() - (watched_.is_repeated() ? 1 : 0);
  }
  /// Returns true if a result of the metric has taken effect since the previous call, or since `start`.
  [[nodiscard]] bool take_new() noexcept { return std::exchange(taken_, watched_.count()) != watched_.count() && watched_.value(); }

private:
  evaluated_value watched_;
  std::int64_t taken_ = 0;
};

}  // namespace stepwell::detail
