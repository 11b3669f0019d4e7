// SPDX-License-Identifier: Apache-2.0
//
// The implementation of an asynchronous session, and the execution of its work on other threads. All functions are written for
// `use_awaitable`.
#pragma once

#include "stepwell/coro/async_sleep.hpp"
#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_hooks.hpp"
#include "stepwell/session/detail/async_parts.hpp"
#include "stepwell/session/detail/async_sources.hpp"
#include "stepwell/session/detail/script.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/session_release.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace stepwell::detail {
namespace asio = boost::asio;

/// The shared state of an asynchronous session.
/// @threads The session's thread, except for the functions that `run_on` runs.
template<class Core>
class async_impl : public std::enable_shared_from_this<async_impl<Core>> {
public:
  using core_type = Core;

  template<class... Args>
  explicit async_impl(async_options how, Args&&... args) : how_(std::move(how)), core_(std::in_place, std::forward<Args>(args)...) {}
  async_impl(const async_impl&) = delete;
  async_impl& operator=(const async_impl&) = delete;

  /// @pre Not abandoned, or inside an operation.
  [[nodiscard]] Core& core() noexcept { return *core_; }
  [[nodiscard]] const async_options& how() const noexcept { return how_; }
  [[nodiscard]] bool is_abandoned() const noexcept { return is_abandoned_; }
  [[nodiscard]] bool is_started() const noexcept { return core_->state().was_ready(); }
  [[nodiscard]] source_registrations<async_impl>& sources() noexcept { return sources_; }

  /// A guard that marks an operation as the one in flight during its lifetime.
  /// @errors `failed_precondition_error` if another operation is in flight.
  class operation {
  public:
    explicit operation(async_impl& self) : self_(self) {
      if (self.is_busy_) { throw failed_precondition_error("another operation of this session is still running; await one at a time"); }
      self.throw_if_abandoned();
      self.is_busy_ = true;
      self.may_step_here_ = false;
    }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    ~operation() {
      self_.is_busy_ = false;
      self_.script_.reset();
      if (self_.is_abandoned()) {
        self_.dispose();
      } else {
        self_.note_place_of_steps();
      }
    }

  private:
    async_impl& self_;
  };
  /// Returns true if a step can run inline; consumes one from the time slice.
  [[nodiscard]] bool may_step_at_once() { return may_step_here_ && !slice_.is_over() && !core_->should_stop() && !core_->recovery_due(); }
  /// @errors `failed_precondition_error` before the start.
  void throw_unless_started() const {
    if (!is_started()) { throw failed_precondition_error("the session is not started; await async_start() first"); }
  }
  /// @errors `failed_precondition_error` before the start, and while a cancelled recovery waits to be continued.
  void throw_unless_ready(const char* operation) const {
    throw_unless_started();
    if (core_->state().phase() == session_phase::backing_off) {
      throw failed_precondition_error(std::string(operation) + ": the session failed, and is not recovered yet");
    }
  }
  void throw_if_abandoned() const {
    if (is_abandoned()) { throw_aborted(); }
  }

  /// Returns the place where steps run. At a master, steps may block on other sessions, so they do not run on an event loop.
  [[nodiscard]] execution_place place_of_steps() {
    if (how_.has_compute()) { return execution_place::compute; }
    return stepwell::is_shared(core_->raw()) ? execution_place::own_thread : execution_place::here;
  }

  /// Calls `function` in `where` and completes when it has returned. A cancellation only interrupts waits for other sessions. If the frame
  /// is destroyed meanwhile, its destructor cancels the call, or blocks until `function` has returned if it has begun.
  /// @errors Exceptions of `function`.
  template<class Function>
  asio::awaitable<void> run_on(execution_place where, Function& function) {
    if (where == execution_place::here) {
      function();
      co_return;
    }
    const auto offloaded_call = coro::make_offloaded_call(function);
    const in_flight now(*this, offloaded_call);
    hand_over(where, offloaded_call);
    const interrupts on_cancel(core_->control().signals());
    co_await offloaded_call->done().async_wait_on(asio::use_awaitable, on_cancel);
    throw_if_abandoned();
    offloaded_call->rethrow();
  }

  /// Awaits a user's coroutine on the executor of the caller. If the session is abandoned meanwhile, its parts are destroyed only after the
  /// coroutine has ended.
  asio::awaitable<void> await_user(asio::awaitable<void> theirs, cancellation_mode mode) {
    const scoped_flag now(is_in_user_code_);
    std::exception_ptr failure;
    const auto here = co_await asio::this_coro::executor;
    try {
      if (mode == cancellation_mode::forwarded) {
        co_await asio::co_spawn(here, on_its_own(std::move(theirs)), asio::use_awaitable);
      } else {
        auto deferred = asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable);
        co_await asio::co_spawn(here, on_its_own(std::move(theirs)), deferred);
      }
    } catch (...) { failure = std::current_exception(); }
    throw_if_abandoned();
    if (failure) { std::rethrow_exception(failure); }
  }
  /// Calls one point of all hooks in order. Points that are not awaited run in `where`.
  template<class Visit>
  asio::awaitable<void> call_hooks(Visit& hooks, execution_place where, cancellation_mode mode) {
    auto call = [this, where](auto& function) { return this->run_on(where, function); };
    auto await = [this, mode](asio::awaitable<void> theirs) { return this->await_user(std::move(theirs), mode); };
    co_await detail::visit_each(hooks, call, await);
  }

  /// Waits until `when`, or until a stop is requested. @cancel Ends only the wait.
  asio::awaitable<void> wait_until(clock::time_point when) {
    const coro::async_event woken;
    const set_on_abandon now(*this, woken);
    const std::stop_callback on_stop(core_->control().signals()->stop_token(), [woken] { woken.set(); });
    co_await coro::async_sleep_until(core_->control().time(), when, woken);
    throw_if_abandoned();
  }
  /// Waits until `woken` is set. @cancel Ends only the wait.
  asio::awaitable<void> wait_for(const coro::async_event& woken) {
    const set_on_abandon now(*this, woken);
    co_await woken.async_wait(asio::use_awaitable);
    throw_if_abandoned();
  }
  /// Returns true if others on this executor should run before the next step; else consumes one step of the time slice.
  [[nodiscard]] bool is_slice_over() noexcept { return !how_.has_compute() && slice_.is_over(); }
  /// Lets others on this executor run, and begins a time slice with one step.
  asio::awaitable<void> yield() {
    co_await asio::post(asio::use_awaitable);
    throw_if_abandoned();
    slice_.begin(core_->control().time()->now());
    static_cast<void>(slice_.is_over());
  }

  /// Takes over the script of the operation in flight. Destroyed with the operation, or when the session is abandoned.
  void set_script(script steps) { script_.emplace(std::move(steps)); }
  [[nodiscard]] script& current_script() noexcept { return *script_; }

  /// Abandons the session: a suspended operation completes with `operation_aborted`. Blocks until work that runs on another thread has
  /// ended.
  void abandon() noexcept {
    if (is_abandoned()) { return; }
    is_abandoned_ = true;
    may_step_here_ = false;
    core_->control().signals()->interrupt();
    if (running_) { running_->cancel_or_wait(); }
    if (event_ != nullptr) { event_->set(); }
    core_->positions().leave_sources();  // sources may be destroyed: they need not outlive the session
    begin_release();
    script_.reset();
    core_->shut_down();
    if (!is_in_user_code_) { dispose(); }
  }

  /// Returns the state that reports when all files that this session has locked are released.
  [[nodiscard]] const std::shared_ptr<release_state>& release() const noexcept { return release_; }
  /// Begins the release of the session. It is reported when all works of the session have released the files that they locked, and either
  /// `end_release` was called or the session's parts are destroyed.
  void begin_release() noexcept {
    log_failure("while abandoning a session", [this] { core_->control().hold_until_released(unreleased_); });
  }
  void end_release() noexcept { unreleased_.reset(); }

  loop_place place;
  no_data nothing_given;

private:
  /// A guard for an offloaded call in flight. Its destructor, and abandoning the session, cancel the call, or block until it has returned
  /// if it has begun.
  class in_flight {
  public:
    in_flight(async_impl& self, std::shared_ptr<coro::offloaded_call> offloaded_call) noexcept
        : self_(self), offloaded_(std::move(offloaded_call)) {
      self_.running_ = offloaded_;
    }
    in_flight(const in_flight&) = delete;
    in_flight& operator=(const in_flight&) = delete;
    ~in_flight() {
      self_.running_ = nullptr;
      if (!offloaded_->has_run() && !self_.is_abandoned()) { self_.core_->control().signals()->interrupt(); }
      offloaded_->cancel_or_wait();
    }

  private:
    async_impl& self_;
    std::shared_ptr<coro::offloaded_call> offloaded_;
  };
  class set_on_abandon {
  public:
    set_on_abandon(async_impl& self, const coro::async_event& async_event) noexcept : self_(self) { self_.event_ = &async_event; }
    set_on_abandon(const set_on_abandon&) = delete;
    set_on_abandon& operator=(const set_on_abandon&) = delete;
    ~set_on_abandon() { self_.event_ = nullptr; }

  private:
    async_impl& self_;
  };
  class scoped_flag {
  public:
    explicit scoped_flag(bool& flag) noexcept : flag_(flag) { flag_ = true; }
    scoped_flag(const scoped_flag&) = delete;
    scoped_flag& operator=(const scoped_flag&) = delete;
    ~scoped_flag() { flag_ = false; }

  private:
    bool& flag_;
  };

  void note_place_of_steps() noexcept {
    may_step_here_ = is_started() && core_->state().phase() != session_phase::backing_off && place_of_steps() == execution_place::here;
  }
  void dispose() noexcept {
    sources_.release_all();
    core_.reset();
    end_release();
  }
  void hand_over(execution_place where, const std::shared_ptr<coro::offloaded_call>& offloaded_call) {
    switch (where) {
      case execution_place::pool: return coro::helper_threads::shared().post([offloaded_call] { offloaded_call->run(); });
      case execution_place::own_thread: return coro::helper_threads::shared().post_apart([offloaded_call] { offloaded_call->run(); });
      case execution_place::compute: return asio::post(how_.compute(), coro::offloaded_call_ticket(offloaded_call));
      case execution_place::here: return;
    }
  }

  async_options how_;
  bool is_busy_ = false;
  bool may_step_here_ = false;
  bool is_abandoned_ = false;
  bool is_in_user_code_ = false;
  time_slice slice_;
  std::optional<Core> core_;  // empty after the session was abandoned and its last operation has ended
  std::optional<script> script_;
  std::shared_ptr<coro::offloaded_call> running_;
  const coro::async_event* event_ = nullptr;
  source_registrations<async_impl> sources_;
  std::shared_ptr<release_state> release_ = std::make_shared<release_state>();
  std::shared_ptr<void> unreleased_ = release_at_end(release_);
};

}  // namespace stepwell::detail
