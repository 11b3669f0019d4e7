// SPDX-License-Identifier: Apache-2.0
//
// The entry point for asynchronous applications: the `monitored_training_session` that returns an asynchronous session.
#pragma once

#include "stepwell/session/async_session.hpp"
#include "stepwell/training/monitored_training_session.hpp"

#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// The result of `defer_start(options)`: the options of an asynchronous session.
class deferred_start {
public:
  explicit deferred_start(async_options how) : how_(std::move(how)) {}
  [[nodiscard]] const async_options& how() const noexcept { return how_; }

private:
  async_options how_;
};

/// Tag that selects an asynchronous session: `monitored_training_session(defer_start, model, options, hooks...)`. Such a session is started
/// by its function `async_start`. `defer_start(async_options().steps_on(executor))` also sets the executor on which steps run.
struct defer_start_t {
  [[nodiscard]] deferred_start operator()(async_options how) const { return deferred_start(std::move(how)); }
  explicit(false) operator deferred_start() const { return deferred_start(async_options()); }
};
inline constexpr defer_start_t defer_start{};

/// Returns an asynchronous session with the same default hooks and options as the session of `monitored_training_session(model, options,
/// hooks...)`. All waits of the session are asynchronous: they suspend the awaiting coroutine. Store the options in a named variable, as in
/// the example: g++ 12 has a bug that destroys an aggregate twice if the aggregate is created inside an awaited expression.
///
///     training_options options{.checkpoint_dir = "run"};
///     auto session = monitored_training_session(defer_start, model, options);
///     co_await session.async_start();
///
/// This function does not access the file system and calls no hooks. `async_start` locks the directory, restores a checkpoint and calls
/// `begin` of the hooks, on a thread of stepwell. If the directory does not exist, `async_start` creates it. If another session or process
/// holds the lock, `async_start` fails with a `failed_precondition_error` that names the process.
/// @errors   `invalid_argument_error` for invalid options and names.
/// @lifetime `model` must outlive the session.
template<class Model, class... Given>
[[nodiscard]] auto monitored_training_session(const deferred_start& start, Model&& model, training_options options = {}, Given... given) {
  if constexpr (detail::can_be_trained<Model>()) {
    auto how = start.how();
    how.creation_waits(how.creation_waits().value_or(!options.is_chief || !options.master.empty() || options.group));
    return detail::make_training_session<async_monitored_session>(model, options, std::tuple<async_options>(std::move(how)),
                                                                  std::move(given)...);
  }
}
/// Like the overload above, with the default options.
template<class Model, class First, class... Given>
  requires(!std::is_convertible_v<First, training_options>)
[[nodiscard]] auto monitored_training_session(const deferred_start& start, Model&& model, First first, Given... given) {
  return monitored_training_session(start, std::forward<Model>(model), training_options{}, std::move(first), std::move(given)...);
}

}  // namespace stepwell
