// SPDX-License-Identifier: Apache-2.0
//
// When an awaited session has released its directory: what can be awaited after the session itself is gone.
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

/// @threads Any, but for `wait`: one at a time.
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

/// A handle without content. The release is set when its last copy is destroyed.
[[nodiscard]] inline std::shared_ptr<void> release_at_end(const std::shared_ptr<release_state>& state) {
  return std::shared_ptr<void>(state.get(), [state](void*) { state->set_released(); });
}

inline boost::asio::awaitable<void> wait_for_release(std::shared_ptr<release_state> state) {
  for (;;) {
    if (state->is_released()) { break; }
    co_await state->async_event().async_wait(boost::asio::use_awaitable);
  }
  state->async_event().set();  // kept for the next wait
}

}  // namespace detail

/// Tells when an awaited session has released its directory. Obtained from `async_monitored_session::release_handle` while the
/// session exists, and used after its end:
///
///     auto handle = session.release_handle();
///     ...                             // the session is destroyed without async_close: what it was writing goes on
///     co_await handle.async_wait();   // the next session can take the directory
///
/// @threads `is_released`: any. `async_wait`: one at a time.
class session_release {
public:
  explicit session_release(std::shared_ptr<detail::release_state> state) noexcept : state_(std::move(state)) {}

  [[nodiscard]] bool is_released() const noexcept { return state_->is_released(); }

  /// Waits until the session is closed or gone, and the checkpoint that it was writing is written or has failed. Returns at
  /// once if that is so. Takes any completion token, signature `void(std::exception_ptr)`.
  /// @cancel Nothing but the wait is lost.
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
