// SPDX-License-Identifier: Apache-2.0
//
// The concept of a session, for loops that are written once for all kinds of sessions.
#pragma once

#include "stepwell/hook/stop.hpp"
#include "stepwell/threads/queue_runner.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <vector>

namespace stepwell {

/// A monitored, singular or type-erased session.
///
/// * `should_stop()` may be called at any time and on any thread. It returns true after `close`.
/// * `request_stop(why)` requests the loop to end after the current step. It may be called on any thread.
/// * `global_step()` returns the number of steps done, including those of earlier runs of the program.
/// * `close()` calls `end` of the hooks, makes the last checkpoint, and throws the first failure. Further calls do nothing.
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

/// Returns no threads: a monitored session starts the queue runners of its scaffold itself.
/// @see `start_queue_runners(queue_runner::session_key, coordinator&, ...)`
template<training_session Session>
std::vector<coordinated_thread> start_queue_runners(const Session& /*session*/, coordinator& /*threads*/,
                                                    std::span<const std::shared_ptr<queue_runner>> /*runners*/) {
  return {};
}

}  // namespace stepwell
