// SPDX-License-Identifier: Apache-2.0
//
// An event that any thread may set and one coroutine waits for. The execution context of the coroutine may be destroyed earlier.
#pragma once

#include "stepwell/coro/detail/event_state.hpp"

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
#include <utility>

namespace stepwell::coro {

namespace detail {
namespace asio = boost::asio;

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
