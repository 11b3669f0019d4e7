// SPDX-License-Identifier: Apache-2.0
//
// What an awaited session keeps between two awaited calls, and how it gets a piece of its work done on another thread.
// `use_awaitable` is what all `async_...()` functions below are made of.
#pragma once

#include "stepwell/coro/async_sleep.hpp"
#include "stepwell/coro/detail/bell.hpp"
#include "stepwell/coro/detail/errand.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_hooks.hpp"
#include "stepwell/session/detail/async_parts.hpp"
#include "stepwell/session/detail/async_sources.hpp"
#include "stepwell/session/detail/session_core.hpp"
#include "stepwell/session/detail/step_driver.hpp"
#include "stepwell/session/session_release.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace stepwell::detail {
namespace asio = boost::asio;

/// @threads The session's, but for what `elsewhere` runs.
template<class Core>
class async_core : public std::enable_shared_from_this<async_core<Core>> {
public:
  using core_type = Core;

  template<class... Args>
  explicit async_core(async_options how, Args&&... args) : how_(std::move(how)), core_(std::in_place, std::forward<Args>(args)...) {}
  async_core(const async_core&) = delete;
  async_core& operator=(const async_core&) = delete;

  /// @pre Not abandoned, or inside an operation.
  [[nodiscard]] Core& core() noexcept { return *core_; }
  [[nodiscard]] const Core& core() const noexcept { return *core_; }
  [[nodiscard]] const async_options& how() const noexcept { return how_; }
  [[nodiscard]] bool is_abandoned() const noexcept { return is_abandoned_; }

  /// Who holds this is the one operation under way. @errors `failed_precondition_error` for a second one.
  class operation {
  public:
    explicit operation(async_core& self) : self_(self) {
      if (self.is_busy_) { throw failed_precondition_error("another operation of this session has not ended; await one at a time"); }
      if (self.is_abandoned()) { throw_aborted(); }
      self.is_busy_ = true;
      self.is_quick_ = false;
    }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    ~operation() {
      self_.is_busy_ = false;
      self_.is_quick_ = self_.is_started && !self_.due && !self_.is_abandoned() && self_.steps_where() == workshop::here;
      if (self_.is_abandoned()) { self_.dispose(); }
    }

  private:
    async_core& self_;
  };
  /// Whether a step may be taken without further ado, as far as the session goes; if so, it is one of this turn.
  [[nodiscard]] bool may_step_at_once() { return is_quick_ && !turns_.is_over() && !core_->should_stop() && !core_->recovery_due(); }
  /// @errors `failed_precondition_error` before the start.
  void refuse_unless_started() const {
    if (!is_started) { throw failed_precondition_error("the session is not started; await async_start() first"); }
  }

  /// Where steps are taken. At a master they may wait for others, so not on an event loop.
  [[nodiscard]] workshop steps_where() {
    if (how_.has_compute()) { return workshop::compute; }
    return stepwell::is_seated(core_->raw()) ? workshop::apart : workshop::here;
  }

  /// Calls `function` in `where` and goes on when it has returned; what it throws is thrown. A cancellation is not heard,
  /// but may end the waiting for others inside. If the frame is destroyed meanwhile, it waits for `function`.
  template<class Function>
  asio::awaitable<void> elsewhere(workshop where, Function& function) {
    if (where == workshop::here) {
      function();
      co_return;
    }
    const auto errand = coro::make_errand(function);
    const under_way now(*this, errand);
    hand_over(where, errand);
    const interrupts on_cancel(core_->control().signals());
    co_await errand->done().async_wait_on(asio::use_awaitable, on_cancel);
    refuse_if_abandoned();
    errand->rethrow();
  }

  /// Awaits `theirs`, which is the user's, on the executor of the one who awaits. Abandoned meanwhile, the session's parts stay
  /// until it has ended.
  asio::awaitable<void> visit(asio::awaitable<void> theirs, hearing hears) {
    const visiting now(*this);
    std::exception_ptr failure;
    const auto here = co_await asio::this_coro::executor;
    try {
      if (hears == hearing::cancellation) {
        co_await asio::co_spawn(here, on_its_own(std::move(theirs)), asio::use_awaitable);
      } else {
        auto deaf = asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable);
        co_await asio::co_spawn(here, on_its_own(std::move(theirs)), deaf);
      }
    } catch (...) { failure = std::current_exception(); }
    refuse_if_abandoned();
    if (failure) { std::rethrow_exception(failure); }
  }
  /// Visits hooks: those that are not awaited in `where`.
  template<class Visit>
  asio::awaitable<void> visit_hooks(Visit& hooks, workshop where, hearing hears) {
    auto call = [this, where](auto& function) { return this->elsewhere(where, function); };
    auto await = [this, hears](asio::awaitable<void> theirs) { return this->visit(std::move(theirs), hears); };
    co_await detail::visit_each(hooks, call, await);
  }

  /// Waits for `when`, or a stop. @cancel Nothing but the waiting is lost.
  asio::awaitable<void> back_off(clock::time_point when) {
    const coro::bell woken;
    const rung_at_end now(*this, woken);
    const std::stop_callback on_stop(core_->control().signals()->stop_token(), [woken] { woken.ring(); });
    co_await coro::async_sleep_until(core_->control().time(), when, woken);
    refuse_if_abandoned();
  }

  /// Waits until `woken` is rung. @cancel Nothing but the waiting is lost.
  asio::awaitable<void> wait_for(const coro::bell& woken) {
    const rung_at_end now(*this, woken);
    co_await woken.async_wait(asio::use_awaitable);
    refuse_if_abandoned();
  }

  /// Lets others have a turn, if this one's is over; then true.
  [[nodiscard]] bool is_turn_over() noexcept { return turns_.is_over(); }
  asio::awaitable<void> take_turn() {
    co_await asio::post(asio::use_awaitable);
    refuse_if_abandoned();
    turns_.begin(core_->control().time()->now());
  }

  /// Creates once; false if it failed in a way that may pass. @cancel Waiting for others is given up.
  asio::awaitable<bool> create() {
    auto& signals = *core_->control().signals();
    signals.clear_interruption();
    bool is_made = false;
    bool is_given_up = false;
    auto make = [&] {
      if constexpr (Core::awaits_hooks()) {
        is_made = core_->creates([&] { core_->make_raw(); });
      } else {
        is_made = core_->create();
      }
    };
    try {
      co_await elsewhere(how_.creation_waits().value_or(false) ? workshop::apart : workshop::helpers, make);
    } catch (const cancelled_error&) {
      if (!signals.interrupted()) { throw; }
      is_given_up = true;
    }
    if (is_given_up) { throw_aborted(); }
    if constexpr (Core::awaits_hooks()) {
      if (is_made) { is_made = co_await tell_of_creation(); }
    }
    co_return is_made;
  }

  /// Recovers as `session_frame::recover` does; where a loop stands then. One that was cancelled goes on here.
  asio::awaitable<loop_place> recover() {
    if (!due) { due.emplace(pending_recovery{core_->step_reached()}); }
    for (;;) {
      if (!due->when) { co_await leave(); }
      co_await throw_if_cancelled();
      co_await back_off(*due->when);
      const bool is_made = co_await create();
      due->when.reset();
      if (is_made) { break; }
    }
    const auto reached = due->reached;
    due.reset();
    co_return detail::place_after_recovery(*core_, reached);
  }

  /// Of the sources that steps are taken from.
  [[nodiscard]] source_holders<async_core>& sources() noexcept { return sources_; }

  /// Whoever waits goes on with `operation_aborted`; the session is gone. Waits for the piece that is running elsewhere.
  void abandon() noexcept {
    if (is_abandoned()) { return; }
    is_abandoned_ = true;
    is_quick_ = false;
    core_->control().signals()->interrupt();
    if (running_) { running_->settle(); }
    if (bell_ != nullptr) { bell_->ring(); }
    core_->positions().leave_sources();  // they may be gone: nothing says that a source outlives the session
    begin_release();
    core_->let_go();
    if (!is_visiting_) { dispose(); }  // else what is visited still uses it
  }

  /// Tells when all that this session has locked is released.
  [[nodiscard]] const std::shared_ptr<release_state>& release() const noexcept { return release_; }
  /// The session is about to be left: the release is reported once its works have released what they locked, and `end_release`
  /// was called or the session's parts are destroyed.
  void begin_release() noexcept {
    log_failure("while a session is left", [this] { core_->control().hold_until_released(unreleased_); });
  }
  void end_release() noexcept { unreleased_.reset(); }

  bool has_begun = false;  // its hooks
  bool is_started = false;
  bool is_spoilt = false;  // starting failed
  std::optional<pending_recovery> due;
  loop_place place;
  no_data nothing_given;

private:
  /// While an errand is under way: abandoning waits for it, and so does the frame's end.
  class under_way {
  public:
    under_way(async_core& self, std::shared_ptr<coro::errand> errand) noexcept : self_(self), errand_(std::move(errand)) {
      self_.running_ = errand_;
    }
    under_way(const under_way&) = delete;
    under_way& operator=(const under_way&) = delete;
    ~under_way() {
      self_.running_ = nullptr;
      if (!errand_->has_run() && !self_.is_abandoned()) { self_.core_->control().signals()->interrupt(); }
      errand_->settle();
    }

  private:
    async_core& self_;
    std::shared_ptr<coro::errand> errand_;
  };
  class rung_at_end {
  public:
    rung_at_end(async_core& self, const coro::bell& bell) noexcept : self_(self) { self_.bell_ = &bell; }
    rung_at_end(const rung_at_end&) = delete;
    rung_at_end& operator=(const rung_at_end&) = delete;
    ~rung_at_end() { self_.bell_ = nullptr; }

  private:
    async_core& self_;
  };

  /// While the user's coroutine is awaited.
  class visiting {
  public:
    explicit visiting(async_core& self) noexcept : self_(self) { self_.is_visiting_ = true; }
    visiting(const visiting&) = delete;
    visiting& operator=(const visiting&) = delete;
    ~visiting() { self_.is_visiting_ = false; }

  private:
    async_core& self_;
  };

  void dispose() noexcept {
    sources_.release_leases();
    core_.reset();
    end_release();
  }
  /// The hooks of a session that is made, up to its first boundary. As `create`.
  asio::awaitable<bool> tell_of_creation() {
    std::exception_ptr failure;
    try {
      session_handle<std::remove_cvref_t<decltype(core_->raw())>> handle(core_->raw(), core_->control());
      typename Core::awaited_hooks::creation hooks(core_->hooks(), handle, core_->threads());
      co_await visit_hooks(hooks, workshop::helpers, hearing::nothing);
    } catch (...) { failure = std::current_exception(); }
    refuse_if_abandoned();
    bool is_made = false;
    auto settle = [&] {
      is_made = core_->creates([&] {
        if (failure) { std::rethrow_exception(failure); }
        core_->settle();
      });
    };
    co_await elsewhere(workshop::helpers, settle);
    co_return is_made;
  }

  void hand_over(workshop where, const std::shared_ptr<coro::errand>& errand) {
    switch (where) {
      case workshop::helpers: return coro::helper_threads::shared().post([errand] { errand->run(); });
      case workshop::apart: return coro::helper_threads::shared().post_apart([errand] { errand->run(); });
      case workshop::compute: return asio::post(how_.compute(), coro::errand_ticket(errand));
      case workshop::here: return;
    }
  }
  void refuse_if_abandoned() const {
    if (is_abandoned()) { throw_aborted(); }
  }
  asio::awaitable<void> leave() {
    clock::time_point when;
    auto plan = [&] { when = core_->plan_recovery(); };
    try {
      co_await elsewhere(workshop::helpers, plan);
    } catch (...) {
      due.reset();  // there is no further try
      throw;
    }
    due->when = when;
  }

  async_options how_;
  bool is_busy_ = false;
  bool is_quick_ = false;
  bool is_abandoned_ = false;
  bool is_visiting_ = false;
  turns turns_;
  std::optional<Core> core_;  // nothing once abandoned, and no operation left
  std::shared_ptr<coro::errand> running_;
  const coro::bell* bell_ = nullptr;
  source_holders<async_core> sources_;
  std::shared_ptr<release_state> release_ = std::make_shared<release_state>();
  std::shared_ptr<void> unreleased_ = release_at_end(release_);
};

}  // namespace stepwell::detail
