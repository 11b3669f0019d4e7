// SPDX-License-Identifier: Apache-2.0
//
// An event that any thread may set and one coroutine waits for. The execution context of the coroutine may be destroyed earlier.
#pragma once

#include "stepwell/base/detail/locks.hpp"

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
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace stepwell::coro {

namespace detail {
namespace asio = boost::asio;

class event_state;

/// The registry of the pending waits of one execution context. The waits that are pending when the context is destroyed are destroyed with
/// it, like all other pending operations. Setting their events later has no effect on them.
class waiter_registry {
public:
  void enter(const std::shared_ptr<event_state>& event) {
    const stepwell::detail::mutex_lock lock(mutex_);
    events_.emplace(event.get(), event);
  }
  void leave(const event_state* event) {
    std::shared_ptr<event_state> last;  // destroyed after the lock is released
    const stepwell::detail::mutex_lock lock(mutex_);
    if (const auto found = events_.find(event); found != events_.end()) {
      last = std::move(found->second);
      events_.erase(found);
    }
  }
  inline void close();

private:
  stepwell::detail::checked_mutex mutex_;
  std::unordered_map<const event_state*, std::shared_ptr<event_state>> events_ STEPWELL_GUARDED_BY(mutex_);
};

/// One pending wait.
class waiter {
public:
  virtual ~waiter() = default;
  /// Posts the completion handler to its executor. Never calls the handler directly. `is_cancelled`: the event was not set.
  virtual void complete(bool is_cancelled) = 0;
};

/// The state of an event, shared by all copies of an `async_event`.
class event_state : public std::enable_shared_from_this<event_state> {
public:
  void set() noexcept { wake(false); }
  void cancel() noexcept { wake(true); }
  /// Destroys the pending wait without completing it.
  void detach_waiter() {
    std::unique_ptr<waiter> last;  // destroyed after the lock is released
    const stepwell::detail::mutex_lock lock(mutex_);
    last = std::move(waiter_);
  }

  /// Starts a wait, or completes it if the event is set. `registry` is that of its execution context, or null.
  /// @pre `registry` contains this event.
  void wait(std::unique_ptr<waiter> made, const std::shared_ptr<waiter_registry>& registry) {
    bool is_set = false;
    {
      const stepwell::detail::mutex_lock lock(mutex_);
      registry_ = registry;
      is_set = std::exchange(is_set_, false);
      if (is_set) {
        made->complete(false);
      } else {
        waiter_ = std::move(made);
      }
    }
    if (is_set && registry) { registry->leave(this); }
  }

private:
  void wake(bool is_cancelled) noexcept {
    const auto self = shared_from_this();  // the woken handler may release the last other reference at once
    std::shared_ptr<waiter_registry> registry;
    {
      const stepwell::detail::mutex_lock lock(mutex_);
      if (!waiter_) {
        is_set_ = is_set_ || !is_cancelled;
        return;
      }
      // Destroyed before the lock is released: the lock delays the destruction of the context until then.
      const auto woken = std::move(waiter_);
      registry = std::move(registry_);
      woken->complete(is_cancelled);
    }
    if (registry) { registry->leave(this); }
  }

  stepwell::detail::checked_mutex mutex_;
  std::unique_ptr<waiter> waiter_ STEPWELL_GUARDED_BY(mutex_);
  std::shared_ptr<waiter_registry> registry_ STEPWELL_GUARDED_BY(mutex_);
  bool is_set_ STEPWELL_GUARDED_BY(mutex_) = false;
};

inline void waiter_registry::close() {
  std::unordered_map<const event_state*, std::shared_ptr<event_state>> all;
  {
    const stepwell::detail::mutex_lock lock(mutex_);
    all.swap(events_);
  }
  for (const auto& [address, event] : all) { event->detach_waiter(); }
}

/// The Asio service that owns the registry of an execution context. The context calls `shutdown` before it destroys its own objects.
class waiter_registry_service final : public asio::execution_context::service {
public:
  inline static asio::execution_context::id id;

  explicit waiter_registry_service(asio::execution_context& owner) : service(owner) {}
  [[nodiscard]] const std::shared_ptr<waiter_registry>& registry() const noexcept { return registry_; }

private:
  void shutdown() override { registry_->close(); }

  std::shared_ptr<waiter_registry> registry_ = std::make_shared<waiter_registry>();
};

template<class Executor>
std::shared_ptr<waiter_registry> registry_of(const Executor& executor) {
  if constexpr (asio::can_query_v<Executor, asio::execution::context_as_t<asio::execution_context&>>) {
    auto& context = asio::query(executor, asio::execution::context_as<asio::execution_context&>);
    return asio::use_service<waiter_registry_service>(context).registry();
  } else {
    return nullptr;
  }
}

template<class Handler, class Executor>
class waiter_of final : public waiter {
public:
  waiter_of(Handler handler, const Executor& executor)
      : work_(asio::prefer(executor, asio::execution::outstanding_work.tracked)), handler_(std::move(handler)) {}

  void complete(bool is_cancelled) override {
    asio::post(work_, [handler = std::move(handler_), is_cancelled]() mutable {
      auto slot = asio::get_associated_cancellation_slot(handler);
      if (slot.is_connected()) { slot.clear(); }
      std::move(handler)(is_cancelled ? boost::system::error_code(asio::error::operation_aborted) : boost::system::error_code());
    });
  }

private:
  using work_type = std::decay_t<decltype(asio::prefer(std::declval<Executor>(), asio::execution::outstanding_work.tracked))>;
  work_type work_;  // outstanding work: keeps the context running while the wait is pending
  Handler handler_;
};

/// Starts a wait that completes with `handler`. A cancellation calls `on_cancel(*state)`, and has no other effect.
template<class Handler, class OnCancel>
void start_wait(const std::shared_ptr<event_state>& state, Handler handler, OnCancel on_cancel) {
  const auto executor = asio::get_associated_executor(handler);
  auto slot = asio::get_associated_cancellation_slot(handler);
  const auto registry = registry_of(executor);
  if (registry) { registry->enter(state); }
  auto made = std::make_unique<waiter_of<Handler, std::remove_const_t<decltype(executor)>>>(std::move(handler), executor);
  if (slot.is_connected()) {
    slot.assign([kept = std::weak_ptr(state), on_cancel](asio::cancellation_type /*any*/) {
      if (const auto self = kept.lock()) { on_cancel(*self); }
    });
  }
  state->wait(std::move(made), registry);
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
    return async_wait(std::forward<Token>(token), [](detail::event_state& event) { event.cancel(); });
  }
  /// Like `async_wait`, but a cancellation calls `on_cancel` and does not end the wait.
  template<class Token, class OnCancel>
  auto async_wait_on(Token&& token, OnCancel on_cancel) const {
    return async_wait(std::forward<Token>(token), [on_cancel](detail::event_state&) { on_cancel(); });
  }

private:
  template<class Token, class OnCancel>
  auto async_wait(Token&& token, OnCancel on_cancel) const {
    return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
        [](auto handler, std::shared_ptr<detail::event_state> state, OnCancel act) {
          detail::start_wait(state, std::move(handler), std::move(act));
        },
        token, state_, std::move(on_cancel));
  }

  std::shared_ptr<detail::event_state> state_ = std::make_shared<detail::event_state>();
};

}  // namespace stepwell::coro
