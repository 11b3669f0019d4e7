// SPDX-License-Identifier: Apache-2.0
//
// An asynchronous snapshot: the copy and the wait for a buffer do not block the event loop.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/async_parts.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace stepwell::detail {

/// Waits until a buffer of `pool` is free, and returns it.
template<class Async>
asio::awaitable<snapshot_pool::buffer> buffer_awaited(Async& self, snapshot_pool pool) {
  for (;;) {
    if (auto memory = pool.try_acquire()) { co_return std::move(*memory); }
    const coro::async_event is_free;
    pool.when_available([is_free] { is_free.set(); });
    co_await self.wait_for(is_free);
  }
}

/// Takes a snapshot, into a buffer of `pool` if it is given.
/// @errors Those of `session_engine::copy_state`.
template<class Async>
asio::awaitable<snapshot> snapshot_awaited(std::shared_ptr<Async> self, std::optional<snapshot_pool> pool) {
  const typename Async::operation now(*self);
  auto& core = self->core();
  self->throw_unless_ready("async_snapshot");
  co_await throw_if_cancelled();
  core.check_copy();
  std::optional<snapshot_pool::buffer> memory;
  if (pool) { memory = co_await detail::buffer_awaited(*self, *pool); }
  snapshot taken;
  auto copy = [&] { taken = core.copy_state(std::move(memory)); };
  co_await self->run_on(execution_place::pool, copy);
  co_return taken;
}

}  // namespace stepwell::detail
