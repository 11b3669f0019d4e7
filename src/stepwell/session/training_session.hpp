// SPDX-License-Identifier: Apache-2.0
//
// The concept of a session, for loops that work with all kinds of sessions. This header also has the result of a step, and `with`, which
// runs a function and closes the session.
#pragma once

#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/protocol/session_metrics.hpp"
#include "stepwell/protocol/session_signals.hpp"

#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// The result of a completed step. All hooks have been called for this step.
template<class Result>
struct step_result {
  Result value;                  ///< The result of the model's `step`.
  std::int64_t global_step = 0;  ///< Number of steps done, including this one.
  /// Number of the attempt. In the first step after a recovery, it is 1 plus the number of recoveries without progress; otherwise it is 1.
  int attempt = 1;
  /// In the first step after a recovery that lost steps: the number of the last lost step. Otherwise empty.
  std::optional<std::int64_t> rolled_back_from = std::nullopt;
};

/// The result of `run_all`.
template<class Result>
struct loop_result {
  std::optional<step_result<Result>> last = std::nullopt;  ///< The last step. Empty if no step was done.
  std::int64_t steps = 0;                                  ///< Number of steps of this loop, including those repeated after a recovery.
  stop_reason why = {};                                    ///< The reason why the loop ended, also available as `stop_reason()`.
  /// The values that hooks have measured, as Keras' `History` has them: the means of each epoch (`epoch_mean_hook`), and the metrics of each
  /// evaluation that has taken effect (`evaluate_every`). The values of one name follow each other, oldest first. They are part of the
  /// checkpoints: a resumed loop also returns those of earlier runs of the program, a recovery drops those of lost steps. At least the
  /// newest 5,000 values of each name are kept.
  std::vector<history_value> values = {};
};

/// A monitored, singular or type-erased session.
///
/// * `should_stop()` returns true if the loop should end, and always after `close`. It may be called on any thread.
/// * `request_stop(why)` requests the loop to end after the current step. It may be called on any thread.
/// * `global_step()` returns the number of steps done, including those of earlier runs of the program.
/// * `close()` calls `end` of the hooks, makes the last checkpoint if the session saves checkpoints, and throws the first failure of these
///   operations. Further calls do nothing.
/// * `steps(source)` returns an input range of steps; see `steps_from`.
template<class Session>
concept training_session = std::move_constructible<Session> && requires(Session& session, const Session& constant) {
  typename Session::result_type;
  typename Session::step_type;
  { constant.should_stop() } -> std::same_as<bool>;
  { session.request_stop() };
  { session.request_stop(std::string()) };
  { constant.stop_reason() } -> std::same_as<stop_reason>;
  { constant.global_step() } -> std::convertible_to<std::int64_t>;
  { session.close() };
};

/// `Session` can step over batches of `Source`.
template<class Session, class Source>
concept steps_from = training_session<Session> && requires(Session& session, Source& source) {
  { session.steps(source) } -> std::ranges::input_range;
};

namespace detail {

/// Returns true if `failure`, thrown by the body of a loop, is the normal end of the loop and not an error.
template<class Session>
[[nodiscard]] bool is_end_of_loop(const Session& session, const std::exception_ptr& failure) {
  const auto kind = detail::kind_of(failure);
  return (kind == errc::out_of_range || kind == errc::stop_iteration) && !session.came_from_hook(failure);
}

}  // namespace detail

/// Runs `body(session)`, then closes the session. If the body throws an `out_of_range_error` or a `stop_iteration` that does not come from
/// a hook, this is the normal end of the loop: the exception is not rethrown, and the session is closed as after a body that returns. After
/// any other exception, `on_error` of the hooks is called, unless it was called for this exception before. `end` is not called. The session
/// is then closed without a last checkpoint, and the exception is rethrown.
/// @errors Exceptions of the body that do not end the loop normally. Exceptions of `close`.
/// @see contract CLOSE-4, CLOSE-5, D-18
template<class Session, class Body>
void with(Session& session, Body&& body) {
  try {
    std::forward<Body>(body)(session);
  } catch (...) {
    const auto failure = std::current_exception();
    if (!detail::is_end_of_loop(session, failure)) {
      session.abandon(failure);
      throw;
    }
  }
  session.close();
}

}  // namespace stepwell
