// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous sleep: like `clock::sleep_until`, but suspends a coroutine instead of blocking a thread.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/coro/detail/async_event.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <utility>

namespace stepwell::coro {

/// Waits until `when` on the clock `time`, or until other code sets the event `woken`. Returns at once if `when` has passed. The alarm at
/// `when` also sets `woken`.
/// @cancel All kinds: throws `operation_aborted`.
inline boost::asio::awaitable<void> async_sleep_until(std::shared_ptr<clock> time, clock::time_point when, async_event woken = {}) {
  if (when <= time->now()) { co_return; }
  const alarm due(std::move(time), when, [woken] { woken.set(); });
  co_await woken.async_wait(boost::asio::use_awaitable);
}

}  // namespace stepwell::coro
