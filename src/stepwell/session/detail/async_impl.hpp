// SPDX-License-Identifier: Apache-2.0
//
// The implementation of an asynchronous session, and the execution of its work on other threads. All functions are written for
// `use_awaitable`.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/coro/async_sleep.hpp"
#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/hook/detail/deferred_requests.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_hooks.hpp"
#include "stepwell/session/detail/run_step.hpp"
#include "stepwell/session/detail/script_coroutine.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/detail/source_cursor.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {
namespace asio = boost::asio;

/// Throws the error of a cancelled operation.
[[noreturn]] inline void throw_aborted() { throw boost::system::system_error(asio::error::operation_aborted, "stepwell"); }

/// Returns true if `failure` is the error of a cancelled operation.
inline bool is_aborted(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) { return error.code() == asio::error::operation_aborted; } catch (...) {
    return false;
  }
}

/// Throws `operation_aborted` if cancellation was requested.
inline asio::awaitable<void> throw_if_cancelled() {
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) { throw_aborted(); }
}

/// A number of steps that run without a yield, chosen so that other work on the event loop can run about every 100 us. The clock is read
/// once for each slice.
class time_slice {
public:
  /// Returns true if the slice is used up; else consumes one step of it.
  [[nodiscard]] bool is_over() noexcept { return --left_ < 0; }
  void begin(clock::time_point now) noexcept {
    using namespace std::chrono_literals;
    const auto took = std::max<clock::duration>(now - begun_, 1ns);
    const auto fits = steps_ * std::chrono::duration_cast<std::chrono::nanoseconds>(100us).count() /
                      std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
    steps_ = std::clamp<std::int64_t>(fits, 1, std::min<std::int64_t>(2 * steps_, 1024));
    left_ = steps_;
    begun_ = now;
  }

private:
  std::int64_t steps_ = 1;
  std::int64_t left_ = 0;
  clock::time_point begun_{};
};

/// A function object that interrupts the waits of a session for other sessions. It is not a lambda: if a lambda is created inside an
/// awaited expression, g++ 12 destroys the lambda twice.
class interrupts {
public:
  explicit interrupts(std::shared_ptr<session_signals> signals) noexcept : signals_(std::move(signals)) {}
  void operator()() const { signals_->interrupt(); }

private:
  std::shared_ptr<session_signals> signals_;
};

/// The place where a piece of work runs.
enum class execution_place {
  here,        ///< On the executor of the caller.
  pool,        ///< On a shared thread: work that may wait for a disk.
  own_thread,  ///< On a thread of its own: work that may wait for another session.
  compute,     ///< On the executor for steps.
};

/// Declares whether a cancellation is forwarded to the awaited coroutine of a user.
enum class cancellation_mode { deferred, forwarded };

/// Awaits a user's coroutine as a separate Asio thread of execution, with all kinds of cancellation enabled.
inline asio::awaitable<void> on_its_own(asio::awaitable<void> theirs) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  co_await std::move(theirs);
}

/// The value of an operation without a result.
struct nothing {};

/// Awaits `make()`. Asio's own check for cancellation before each `co_await` is switched off meanwhile, because it would discard completed
/// work.
/// `T` is the result of `make()`, or void.
template<class T, class Make>
asio::awaitable<T> defer_cancellation(Make make) {
  using value_type = std::conditional_t<std::is_void_v<T>, nothing, T>;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr failure;
  std::optional<value_type> value;
  try {
    value_type got = co_await make();
    value.emplace(std::move(got));
  } catch (...) { failure = std::current_exception(); }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) { std::rethrow_exception(failure); }
  if constexpr (!std::is_void_v<T>) { co_return std::move(*value); }
}

/// The registration of a source with a session: the base class for sources of all types.
class source_registration_base {
public:
  virtual ~source_registration_base() = default;
  virtual void release() noexcept = 0;
};

/// A variable whose address identifies the type `Source`.
template<class Source>
inline constexpr char kind_of_source{};

/// All source registrations of one session. Owns the registrations of sources that are passed to each call separately
/// (`async_next(source)`).
class source_registrations {
public:
  /// Returns the registration for `source`, which is identified by its address and type. Creates it with `make()` if there is none.
  template<class Registration, class Source, class Make>
  Registration& holder_of(Source& source, Make make) {
    for (const auto& given : given_) {
      if (given.address == &source && given.kind == &kind_of_source<Source>) [[likely]] {
        return static_cast<Registration&>(*given.holder);
      }
    }
    auto made = make();
    auto& holder = *made;
    given_.push_back({&source, &kind_of_source<Source>, std::move(made)});
    return holder;
  }
  template<class Source>
  void release(const Source& source) noexcept {
    std::erase_if(given_, [&](const given_source& given) {
      return given.address == &source && given.kind == &kind_of_source<std::remove_const_t<Source>>;
    });
  }
  void add(source_registration_base* holder) { all_.push_back(holder); }
  void remove(source_registration_base* holder) noexcept { std::erase(all_, holder); }
  void release_all() noexcept {
    for (auto* holder : all_) { holder->release(); }
  }

private:
  struct given_source {
    const void* address;
    const char* kind;
    std::unique_ptr<source_registration_base> holder;
  };

  std::vector<source_registration_base*> all_;
  std::vector<given_source> given_;  // destroyed first: they are in `all_`
};

/// The registration of a source of type `Source`. It takes effect with the first step over the source.
/// @lifetime `self` and `source` must outlive it.
template<class Async, class Source>
class source_registration final : public source_registration_base, public loop_source<typename Async::core_type, Source> {
public:
  source_registration(Async& self, Source& source)
      : loop_source<typename Async::core_type, Source>(self.core(), source), all_(self.sources()) {
    all_.add(this);
  }
  source_registration(const source_registration&) = delete;
  source_registration& operator=(const source_registration&) = delete;
  ~source_registration() override { all_.remove(this); }

  void release() noexcept override { this->detach(); }

private:
  source_registrations& all_;
};

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
  [[nodiscard]] source_registrations& sources() noexcept { return sources_; }
  /// Returns the registration of a source that is passed to each call separately.
  template<class Source>
  auto& holder_of(Source& source) {
    using registration = source_registration<async_impl, Source>;
    return sources_.template holder_of<registration>(source, [&] { return std::make_unique<registration>(*this, source); });
  }

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
  [[nodiscard]] bool may_step_at_once() {
    return may_step_here_ && !slice_.is_over() && !core_->should_stop() && !core_->is_recovery_due();
  }
  /// @errors `failed_precondition_error` before the start.
  void throw_unless_started() const {
    if (!is_started()) { throw failed_precondition_error("the session is not started; await async_start() first"); }
  }
  /// @errors `failed_precondition_error` before the start, and while a cancelled recovery waits to be continued.
  void throw_unless_ready(const char* operation) const {
    throw_unless_started();
    if (core_->state().is_recovering()) {
      throw failed_precondition_error(std::string(operation) + ": the session failed, and is not recovered yet");
    }
  }
  void throw_if_abandoned() const {
    if (is_abandoned()) { throw_aborted(); }
  }

  /// Returns the place where steps run. A step on a shared model may block on other sessions, so it needs another thread.
  [[nodiscard]] execution_place place_of_steps() {
    if (how_.has_compute()) { return execution_place::compute; }
    return stepwell::is_shared(core_->raw()) ? execution_place::own_thread : execution_place::here;
  }

  /// Calls `function` in `where` and completes when it has returned. A cancellation only interrupts waits for other sessions. If the
  /// coroutine frame is destroyed meanwhile, its destructor cancels a call that has not begun, and blocks until a running call returns.
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
  /// Calls one hook point, such as `after_run`, of all hooks in order. Calls that are not awaited run in `where`.
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
  /// Returns true if other handlers of this executor should run before the next step; else consumes one step of the time slice.
  [[nodiscard]] bool is_slice_over() noexcept { return !how_.has_compute() && slice_.is_over(); }
  /// Lets other handlers of this executor run. Then begins a new time slice, and consumes its first step.
  asio::awaitable<void> yield() {
    co_await asio::post(asio::use_awaitable);
    throw_if_abandoned();
    slice_.begin(core_->control().time()->now());
    static_cast<void>(slice_.is_over());
  }

  /// A guard that keeps a script alive while it is executed: the script of an operation, or of a run inside a step function. The script is
  /// destroyed with the guard, or earlier if the session is abandoned.
  class running_script {
  public:
    running_script(async_impl& self, script steps) : self_(self) { self_.scripts_.push_back(std::move(steps)); }
    running_script(const running_script&) = delete;
    running_script& operator=(const running_script&) = delete;
    ~running_script() {
      if (!self_.scripts_.empty()) { self_.scripts_.pop_back(); }
    }

  private:
    async_impl& self_;
  };
  [[nodiscard]] script& current_script() noexcept { return scripts_.back(); }

  /// Abandons the session: a suspended operation completes with `operation_aborted`. Blocks until work that runs on another thread has
  /// ended.
  void abandon() noexcept {
    if (is_abandoned()) { return; }
    is_abandoned_ = true;
    may_step_here_ = false;
    core_->control().signals()->interrupt();
    if (running_) { running_->cancel_or_wait(); }
    if (event_ != nullptr) { event_->set(); }
    core_->positions().leave_sources();  // from now on the caller may destroy the sources
    begin_release();
    while (!scripts_.empty()) { scripts_.pop_back(); }  // innermost first
    core_->shut_down();
    if (!is_in_user_code_) { dispose(); }
  }

  /// Returns the state that reports when all files that this session has locked are released.
  [[nodiscard]] const std::shared_ptr<release_state>& release() const noexcept { return release_; }
  /// Begins the release of the session. The release is reported when two conditions hold. All works of the session have released the files
  /// that they locked. And `end_release` was called, which also happens when the session's parts are destroyed.
  void begin_release() noexcept {
    log_failure("while abandoning a session", [this] { core_->control().hold_until_released(unreleased_); });
  }
  void end_release() noexcept { unreleased_.reset(); }

  loop_place place;
  no_data nothing_given;

private:
  /// A guard for an offloaded call in flight. Its destructor cancels the call if the function has not begun. Otherwise it blocks until the
  /// function has returned. `abandon` does the same.
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
    explicit scoped_flag(bool& flag) noexcept : flag_(flag), before_(std::exchange(flag, true)) {}
    scoped_flag(const scoped_flag&) = delete;
    scoped_flag& operator=(const scoped_flag&) = delete;
    ~scoped_flag() { flag_ = before_; }

  private:
    bool& flag_;
    bool before_;
  };

  void note_place_of_steps() noexcept {
    may_step_here_ = is_started() && !core_->state().is_recovering() && place_of_steps() == execution_place::here;
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
  std::optional<Core> core_;     // empty after the session was abandoned and its last operation has ended
  std::vector<script> scripts_;  // more than one inside a step function
  std::shared_ptr<coro::offloaded_call> running_;
  const coro::async_event* event_ = nullptr;
  source_registrations sources_;
  std::shared_ptr<release_state> release_ = std::make_shared<release_state>();
  std::shared_ptr<void> unreleased_ = release_at_end(release_);
};

}  // namespace stepwell::detail
