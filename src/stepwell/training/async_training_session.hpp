// SPDX-License-Identifier: Apache-2.0
//
// The front door for asynchronous applications: the session of `monitored_training_session`, awaited.
#pragma once

#include "stepwell/session/async_session.hpp"
#include "stepwell/training/monitored_training_session.hpp"

#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// What `defer_start(options)` is.
class deferred_start {
public:
  explicit deferred_start(async_options how) : how_(std::move(how)) {}
  [[nodiscard]] const async_options& how() const noexcept { return how_; }

private:
  async_options how_;
};

/// Says that a session is started by awaiting `async_start`: `monitored_training_session(defer_start, model, options, hooks...)`;
/// with `defer_start(async_options().steps_on(executor))` where it runs is said, too.
struct defer_start_t {
  [[nodiscard]] deferred_start operator()(async_options how) const { return deferred_start(std::move(how)); }
};
inline constexpr defer_start_t defer_start{};

/// The type of a session made by `monitored_training_session(defer_start, ...)`.
template<class Model, class... Hooks>
using async_training_session_of = detail::session_of_hooks<async_monitored_session, Model, Hooks...>;

/// What `monitored_training_session(model, options, hooks...)` makes, but nothing is looked for, restored or begun before
/// `async_start` is awaited, and every wait is awaited.
///
///     training_options<my_model> options{.checkpoint_dir = "run"};  // named first: g++ 12 destroys an aggregate twice that is
///     auto session = monitored_training_session(defer_start, model, options);                // made inside an awaited expression
///     co_await session.async_start();
///
/// This call makes no call to a file system. `async_start` creates and locks the directory, and reads what is in it, on a
/// thread of the library's; there a directory that is held by another is a `failed_precondition_error` naming the holder.
/// @errors   `invalid_argument_error` for options and names that make no sense.
/// @lifetime `model` must outlive the session.
template<class Model, class... Hooks>
[[nodiscard]] auto monitored_training_session(const deferred_start& start, Model&& model,
                                              training_options<std::remove_cvref_t<Model>> options = {}, Hooks... hooks) {
  if constexpr (detail::can_be_trained<Model>()) {
    auto how = start.how();
    how.creation_waits(how.creation_waits().value_or(!options.is_chief || !options.master.empty()));
    return detail::make_training_session<async_monitored_session>(model, options, std::tuple<async_options>(std::move(how)),
                                                                  std::move(hooks)...);
  }
}
template<class Model, class... Hooks>
[[nodiscard]] auto monitored_training_session(defer_start_t, Model&& model, training_options<std::remove_cvref_t<Model>> options = {},
                                              Hooks... hooks) {
  return stepwell::monitored_training_session(deferred_start(async_options()), std::forward<Model>(model), std::move(options),
                                              std::move(hooks)...);
}

}  // namespace stepwell
