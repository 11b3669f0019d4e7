// SPDX-License-Identifier: Apache-2.0
//
// An event that any thread may set and one coroutine waits for. The execution context of the coroutine may be destroyed earlier.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace stepwell::coro {

namespace detail {
namespace asio = boost::asio;

class async_event_state;

/// The registry of the pending waits of one execution context. The waits that are pending when the context is destroyed are destroyed with
/// it, like all other pending operations. Setting their events later has no effect on them.
class waiter_registry {
public:
  void enter(const std::shared_ptr<async_event_state>& async_event) {
    const std::lock_guard lock(mutex_);
    events_.emplace(async_event.get(), async_event);
  }
  void leave(const async_event_state* async_event) {
    std::shared_ptr<async_event_state> last;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    if (const auto found = events_.find(async_event); found != events_.end()) {
      last = std::move(found->second);
      events_.erase(found);
    }
  }
  inline void close();

private:
  std::mutex mutex_;
  std::unordered_map<const async_event_state*, std::shared_ptr<async_event_state>> events_;
};

/// The Asio service that owns the registry of an execution context. The context calls `shutdown` before it destroys its own objects.
class waiter_registry_service final : public asio::execution_context::service {
public:
  inline static asio::execution_context::id id;

  explicit waiter_registry_service(asio::execution_context& owner) : service(owner) {}
  [[nodiscard]] const std::shared_ptr<waiter_registry>& room() const noexcept { return room_; }

private:
  void shutdown() override { room_->close(); }

  std::shared_ptr<waiter_registry> room_ = std::make_shared<waiter_registry>();
};

/// One pending wait.
class waiter {
public:
  virtual ~waiter() = default;
  /// Posts the completion handler with `how` to its executor. Never calls the handler directly.
  virtual void go_on(boost::system::error_code how) = 0;
};

template<class Handler, class Executor>
class waiter_of final : public waiter {
public:
  waiter_of(Handler handler, const Executor& executor)
      : work_(asio::prefer(executor, asio::execution::outstanding_work.tracked)), handler_(std::move(handler)) {}

  void go_on(boost::system::error_code how) override {
    asio::post(work_, [handler = std::move(handler_), how]() mutable {
      auto slot = asio::get_associated_cancellation_slot(handler);
      if (slot.is_connected()) { slot.clear(); }
      std::move(handler)(how);
    });
  }

private:
  using work_type = std::decay_t<decltype(asio::prefer(std::declval<Executor>(), asio::execution::outstanding_work.tracked))>;
  work_type work_;  // outstanding work: keeps the context running while the wait is pending
  Handler handler_;
};

/// The state of an event, shared by all copies of a `async_event`.
class async_event_state : public std::enable_shared_from_this<async_event_state> {
public:
  void set() noexcept { wake({}, true); }
  void cancel() noexcept { wake(asio::error::operation_aborted, false); }
  void detach_waiter() {
    std::unique_ptr<waiter> last;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    last = std::move(waiter_);
  }

  /// Starts a wait that completes with `handler`. A cancellation calls `on_cancel(*this)`, and has no other effect.
  template<class Handler, class OnCancel>
  void wait(Handler handler, OnCancel on_cancel) {
    const auto executor = asio::get_associated_executor(handler);
    const auto slot = asio::get_associated_cancellation_slot(handler);
    auto room = room_of(executor);
    if (room) { room->enter(shared_from_this()); }
    auto made = std::make_unique<waiter_of<Handler, std::remove_const_t<decltype(executor)>>>(std::move(handler), executor);
    if (slot.is_connected()) {
      auto connected = slot;
      connected.assign([kept = weak_from_this(), on_cancel](asio::cancellation_type /*any*/) {
        if (const auto self = kept.lock()) { on_cancel(*self); }
      });
    }
    bool is_set = false;
    {
      const std::lock_guard lock(mutex_);
      room_ = room;
      is_set = std::exchange(is_set_, false);
      if (is_set) {
        made->go_on({});
      } else {
        waiter_ = std::move(made);
      }
    }
    if (is_set && room) { room->leave(this); }
  }

private:
  template<class Executor>
  static std::shared_ptr<waiter_registry> room_of(const Executor& executor) {
    if constexpr (asio::can_query_v<Executor, asio::execution::context_as_t<asio::execution_context&>>) {
      return asio::use_service<waiter_registry_service>(asio::query(executor, asio::execution::context_as<asio::execution_context&>))
          .room();
    } else {
      return nullptr;
    }
  }

  void wake(boost::system::error_code how, bool stays_set) noexcept {
    const auto self = shared_from_this();  // the woken handler may release the last other reference at once
    std::shared_ptr<waiter_registry> room;
    {
      const std::lock_guard lock(mutex_);
      if (!waiter_) {
        is_set_ = is_set_ || stays_set;
        return;
      }
      // Destroyed before the lock is released: the lock delays the destruction of the context until then.
      const auto woken = std::move(waiter_);
      room = std::move(room_);
      woken->go_on(how);
    }
    if (room) { room->leave(this); }
  }

  std::mutex mutex_;
  std::unique_ptr<waiter> waiter_;
  std::shared_ptr<waiter_registry> room_;
  bool is_set_ = false;
};

inline void waiter_registry::close() {
  std::unordered_map<const async_event_state*, std::shared_ptr<async_event_state>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(events_);
  }
  for (const auto& [address, async_event] : all) { async_event->detach_waiter(); }
}

}  // namespace detail

/// An event with automatic reset. `set` sets it and completes the pending wait. Without a pending wait the event stays set, and the next
/// wait completes at once.
///
/// The event may be set while the execution context of the wait is being destroyed, and later. It then wakes no coroutine. (A timer that
/// is cancelled to wake a coroutine does not allow this.)
/// @threads `set`: any thread. `async_wait`: one wait at a time. All copies share one event.
class async_event {
public:
  /// Sets the event.
  void set() const noexcept { state_->set(); }

  /// Waits until the event is set. Accepts any completion token for the signature `void(error_code)`.
  /// @cancel All kinds: completes with `operation_aborted`.
  template<class Token>
  auto async_wait(Token&& token) const {
    return async_wait(std::forward<Token>(token), [](detail::async_event_state& async_event) { async_event.cancel(); });
  }
  /// Like `async_wait`, but a cancellation calls `on_cancel` and does not end the wait.
  template<class Token, class OnCancel>
  auto async_wait_on(Token&& token, OnCancel on_cancel) const {
    return async_wait(std::forward<Token>(token), [on_cancel](detail::async_event_state&) { on_cancel(); });
  }

private:
  template<class Token, class OnCancel>
  auto async_wait(Token&& token, OnCancel on_cancel) const {
    return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
        [](auto handler, std::shared_ptr<detail::async_event_state> state, OnCancel act) {
          state->wait(std::move(handler), std::move(act));
        },
        token, state_, std::move(on_cancel));
  }

  std::shared_ptr<detail::async_event_state> state_ = std::make_shared<detail::async_event_state>();
};

}  // namespace stepwell::coro
