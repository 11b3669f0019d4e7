// SPDX-License-Identifier: Apache-2.0
//
// A hook that feeds every run with the values that a function returns.
// @see contract HOOK-FEED
#pragma once

#include "stepwell/protocol/run_args.hpp"

#include <concepts>
#include <utility>

namespace stepwell {

/// Calls a function before every run. The function returns a feed, which the hook adds to the run: `feed_fn_hook([&] { return
/// feed(&model::rate, schedule()); })`. For several feeds, the function returns `feeds(...)`.
/// @errors `failed_precondition_error`, thrown by the run, if the same key is fed by the caller or by another hook.
/// @see contract RUN-5
template<std::invocable Function>
class feed_fn_hook {
public:
  explicit feed_fn_hook(Function feed_fn) : feed_fn_(std::move(feed_fn)) {}

  auto before_run(auto& /*context*/) { return run_args{.feed = feed_fn_()}; }

private:
  Function feed_fn_;
};

}  // namespace stepwell
