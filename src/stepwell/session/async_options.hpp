// SPDX-License-Identifier: Apache-2.0
//
// Options of an asynchronous session: the executors and threads on which its parts run. This header also has the handle that reports when a
// session has released its directory.
#pragma once

#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/coro/detail/initiate.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace stepwell {

/// Options of an asynchronous session. This is a class with setters and not an aggregate, because a bug of g++ 12 destroys an aggregate
/// twice if it is created inside an awaited expression. An `async_options` object may be created inside an awaited expression:
///
///     async_options().steps_on(pool.get_executor())
class async_options {
public:
  using executor_type = boost::asio::any_io_executor;

  async_options() = default;

  /// Runs steps and the hooks around them on `executor`, one at a time, so that the executor of the caller stays responsive. By default
  /// they run on the executor of the caller, and occupy a thread of this executor during a step. In a session with a master or a group,
  /// they run on a thread of the library by default. If the `step` of a model returns an awaitable, it always runs on the executor of the
  /// caller.
  /// @lifetime The execution context of `executor` must outlive the session, or it must destroy posted functions that it does not run.
  async_options& steps_on(executor_type executor) {
    compute_ = std::move(executor);
    return *this;
  }
  /// Runs operations whose completion handler has no executor (plain callbacks and futures) on `executor`. By default they run on Asio's
  /// system executor, which has its own threads.
  async_options& runs_on(executor_type executor) {
    executor_ = std::move(executor);
    return *this;
  }

  /// Declares whether the creation of the session may wait for another session. For example, a worker waits for its chief. If `may_wait` is
  /// true, the creation runs on a separate thread. If it is false, the creation runs on one of a few threads that all sessions share. The
  /// default is true for a session that is constructed with a session creator, and for a training session that is not the chief, or has a
  /// master or a group. Otherwise the default is false.
  async_options& creation_waits(bool may_wait) {
    creation_waits_ = may_wait;
    return *this;
  }

  [[nodiscard]] bool has_compute() const noexcept { return static_cast<bool>(compute_); }
  [[nodiscard]] const executor_type& compute() const noexcept { return compute_; }
  [[nodiscard]] executor_type executor() const { return executor_ ? executor_ : executor_type(boost::asio::system_executor()); }
  [[nodiscard]] std::optional<bool> creation_waits() const noexcept { return creation_waits_; }

private:
  executor_type compute_;
  executor_type executor_;
  std::optional<bool> creation_waits_;
};

namespace detail {

/// The state shared by a session and its release handles.
/// @threads Any, except that only one coroutine `wait_for_release` may run at a time.
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

/// Returns a shared pointer without a usable object. When its last copy is destroyed, `state` is marked as released.
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
/// while the session exists. The handle may be used after the session is destroyed:
///
///     auto handle = session.release_handle();
///     ...                             // the session is destroyed without async_close; pending writes continue
///     co_await handle.async_wait();   // the next session can lock the directory
///
/// @threads `is_released` may be called on any thread. Only one `async_wait` of all handles of a session may be pending at a time.
class session_release {
public:
  explicit session_release(std::shared_ptr<detail::release_state> state) noexcept : state_(std::move(state)) {}

  [[nodiscard]] bool is_released() const noexcept { return state_->is_released(); }

  /// Waits until the session is closed or destroyed, and the checkpoint that the session was writing is complete or has failed. Completes
  /// at once if the directory is already released. Takes any completion token, with the signature `void(std::exception_ptr)`.
  /// @cancel Ends the wait. Pending writes of the session continue.
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
