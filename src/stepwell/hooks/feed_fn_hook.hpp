// SPDX-License-Identifier: Apache-2.0
//
// Feeds every run with what a function says (contract HOOK-FEED).
#pragma once

#include "stepwell/hook/run_args.hpp"

#include <concepts>
#include <type_traits>
#include <utility>

namespace stepwell {

/// `feed_fn_hook([&] { return feed(&model::rate, schedule()); })`; several with `feeds(...)`. Called before every run.
/// @errors `failed_precondition_error` out of the run when somebody else feeds the same (RUN-5).
template<std::invocable Function>
class feed_fn_hook {
public:
  explicit feed_fn_hook(Function feed_fn) : feed_fn_(std::move(feed_fn)) {}

  auto before_run(auto& /*context*/) { return run_args{.feed = feed_fn_()}; }

private:
  Function feed_fn_;
};

}  // namespace stepwell
