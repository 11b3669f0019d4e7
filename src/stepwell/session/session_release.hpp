// SPDX-License-Identifier: Apache-2.0
//
// Notification that an asynchronous session has released its directory. It can be awaited after the session is destroyed.
#pragma once

#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/coro/detail/initiate.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace stepwell {

namespace detail {

/// The state shared by a session and its release handles.
/// @threads Any, except that only one `wait_for_release` may wait at a time.
class release_state {
public:
  void set_released() noexcept {
    is_released_ = true;
    event_.set();
  }
  [[nodiscard]] bool is_released() const noexcept { return is_released_; }
  [[nodiscard]] const coro::async_event& async_event() const noexcept { return event_; }

private:
  std::atomic<bool> is_released_ = false;
  coro::async_event event_;
};

/// Returns a handle without content. When its last copy is destroyed, `state` is marked as released.
[[nodiscard]] inline std::shared_ptr<void> release_at_end(const std::shared_ptr<release_state>& state) {
  return std::shared_ptr<void>(state.get(), [state](void*) { state->set_released(); });
}

inline boost::asio::awaitable<void> wait_for_release(std::shared_ptr<release_state> state) {
  for (;;) {
    if (state->is_released()) { break; }
    co_await state->async_event().async_wait(boost::asio::use_awaitable);
  }
  state->async_event().set();  // the next wait completes at once
}

}  // namespace detail

/// A handle that reports when an asynchronous session has released its directory. Get it from `async_monitored_session::release_handle`
/// while the session exists. It may be used after the session is destroyed:
///
///     auto handle = session.release_handle();
///     ...                             // the session is destroyed without async_close; pending writes continue
///     co_await handle.async_wait();   // the next session can lock the directory
///
/// @threads `is_released`: any. `async_wait`: one at a time.
class session_release {
public:
  explicit session_release(std::shared_ptr<detail::release_state> state) noexcept : state_(std::move(state)) {}

  [[nodiscard]] bool is_released() const noexcept { return state_->is_released(); }

  /// Waits until the session is closed or destroyed, and the checkpoint that it was writing is complete or has failed. Completes at once if
  /// this is already the case. Takes any completion token, with the signature `void(std::exception_ptr)`.
  /// @cancel Ends only the wait.
  template<class Token = boost::asio::use_awaitable_t<>>
  auto async_wait(Token&& token = Token()) const {
    return coro::initiate<void>(
        std::forward<Token>(token), state_, [] { return boost::asio::any_io_executor(boost::asio::system_executor()); },
        [state = state_] { return detail::wait_for_release(state); });
  }

private:
  std::shared_ptr<detail::release_state> state_;
};

}  // namespace stepwell
