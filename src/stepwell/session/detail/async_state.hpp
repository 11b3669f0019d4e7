// SPDX-License-Identifier: Apache-2.0
//
// The state of an asynchronous session, apart from the functions that await: its parts, the operation in flight, the place of each piece of
// work, and abandoning.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/coro/detail/aborted.hpp"
#include "stepwell/coro/detail/async_event.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/protocol/session_signals.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/run_step.hpp"
#include "stepwell/session/detail/script_coroutine.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/detail/source_registrations.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// A number of steps that run without a yield, chosen so that other work on the event loop can run about every 100 us. The clock is read
/// once for each slice. The maximum is for steps that become slower within a slice: the fastest steps take about 25 ns.
class time_slice {
public:
  /// Returns true if the slice is used up; else consumes one step of it.
  [[nodiscard]] bool is_over() noexcept { return --left_ < 0; }
  void begin(clock::time_point now) noexcept {
    using namespace std::chrono_literals;
    const auto took = std::max<clock::duration>(now - begun_, 1ns);
    const auto fits = steps_ * std::chrono::duration_cast<std::chrono::nanoseconds>(100us).count() /
                      std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
    steps_ = std::clamp<std::int64_t>(fits, 1, std::min<std::int64_t>(2 * steps_, 4096));
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
  copies,      ///< On a shared thread for work that calls no file system.
  own_thread,  ///< On a thread of its own: work that may wait for another session.
  compute,     ///< On the executor for steps.
};

/// The value of an operation without a result.
struct nothing {};

/// A guard that sets a variable for the duration of its scope.
template<class T>
class scoped_value {
public:
  scoped_value(T& variable, std::type_identity_t<T> value) noexcept : variable_(variable), before_(std::exchange(variable, value)) {}
  scoped_value(const scoped_value&) = delete;
  scoped_value& operator=(const scoped_value&) = delete;
  ~scoped_value() { variable_ = before_; }

private:
  T& variable_;
  T before_;
};

/// The shared state of an asynchronous session.
/// @threads The session's thread.
template<class Core>
class async_state {
public:
  using core_type = Core;

  template<class... Args>
  explicit async_state(async_options how, Args&&... args) : how_(std::move(how)), core_(std::in_place, std::forward<Args>(args)...) {}
  async_state(const async_state&) = delete;
  async_state& operator=(const async_state&) = delete;

  /// @pre Not abandoned, or inside an operation.
  [[nodiscard]] Core& core() noexcept { return *core_; }
  [[nodiscard]] const async_options& how() const noexcept { return how_; }
  [[nodiscard]] bool is_abandoned() const noexcept { return is_abandoned_; }
  [[nodiscard]] bool is_started() const noexcept { return core_->state().was_ready(); }
  [[nodiscard]] source_registrations& sources() noexcept { return sources_; }
  /// Returns the registration of a source that is passed to each call separately.
  template<class Source>
  [[gnu::always_inline]] auto& holder_of(Source& source) {
    using registration = source_registration<Core, Source>;
    return sources_.template holder_of<registration>(source, [&] { return std::make_unique<registration>(*core_, sources_, source); });
  }

  /// A guard that marks an operation as the one in flight during its lifetime.
  /// @errors `failed_precondition_error` if another operation is in flight.
  class operation {
  public:
    explicit operation(async_state& self) : self_(self) {
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
    async_state& self_;
  };
  /// Returns true if a step can run inline; consumes one from the time slice.
  [[nodiscard]] bool may_step_at_once() { return may_step_here_ && !slice_.is_over() && core_->may_step_at_once(); }
  /// @errors `failed_precondition_error` before the start.
  void throw_unless_started() const { core_->throw_unless_started(); }
  /// @errors `failed_precondition_error` before the start, and while a cancelled recovery waits to be continued.
  void throw_unless_ready(const char* operation) const {
    throw_unless_started();
    if (core_->state().is_recovering()) {
      throw failed_precondition_error(std::string(operation) + ": the session failed, and is not recovered yet");
    }
  }
  void throw_if_abandoned() const {
    if (is_abandoned()) { coro::throw_aborted(); }
  }

  /// Returns true if other handlers of this executor should run before the next step; else consumes one step of the time slice.
  [[nodiscard]] bool is_slice_over() noexcept { return !how_.has_compute() && slice_.is_over(); }

  /// Returns the place where steps run. A step on a shared model may block on other sessions, and one of a group on other processes, so it
  /// needs another thread.
  [[nodiscard]] execution_place place_of_steps() {
    if (how_.has_compute()) { return execution_place::compute; }
    return core_->options().group || detail::is_shared(core_->raw()) ? execution_place::own_thread : execution_place::here;
  }

  /// A guard that keeps a script alive while it is executed: the script of an operation, or of a run inside a step function. The script is
  /// destroyed with the guard, or earlier if the session is abandoned.
  class running_script {
  public:
    running_script(async_state& self, script steps) : self_(self) { self_.scripts_.push_back(std::move(steps)); }
    running_script(const running_script&) = delete;
    running_script& operator=(const running_script&) = delete;
    ~running_script() {
      if (!self_.scripts_.empty()) { self_.scripts_.pop_back(); }
    }

  private:
    async_state& self_;
  };
  [[nodiscard]] script& current_script() noexcept { return scripts_.back(); }

  /// Abandons the session: a suspended operation completes with `operation_aborted`. Blocks until work that runs on another thread has
  /// ended.
  void abandon() noexcept {
    if (is_abandoned()) { return; }
    is_abandoned_ = true;
    may_step_here_ = false;
    core_->requests().signals()->interrupt();
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
    const log_scope named(core_->options().name);
    log_failure("while abandoning a session", [this] { core_->requests().works().hold_until_released(unreleased_); });
  }
  void end_release() noexcept { unreleased_.reset(); }

  loop_place place;
  no_data nothing_given;

protected:
  ~async_state() = default;

  /// A guard for an offloaded call in flight. Its destructor cancels the call if the function has not begun. Otherwise it blocks until the
  /// function has returned. `abandon` does the same.
  class in_flight {
  public:
    in_flight(async_state& self, std::shared_ptr<coro::offloaded_call> offloaded_call) noexcept
        : self_(self), offloaded_(std::move(offloaded_call)) {
      self_.running_ = offloaded_;
    }
    in_flight(const in_flight&) = delete;
    in_flight& operator=(const in_flight&) = delete;
    ~in_flight() {
      self_.running_ = nullptr;
      if (!offloaded_->has_run() && !self_.is_abandoned()) { self_.core_->requests().signals()->interrupt(); }
      offloaded_->cancel_or_wait();
    }

  private:
    async_state& self_;
    std::shared_ptr<coro::offloaded_call> offloaded_;
  };

  bool is_in_user_code_ = false;
  const coro::async_event* event_ = nullptr;  // set if the session is abandoned
  time_slice slice_;

private:
  void note_place_of_steps() noexcept {
    may_step_here_ = is_started() && !core_->state().is_recovering() && place_of_steps() == execution_place::here;
  }
  void dispose() noexcept {
    sources_.release_all();
    core_.reset();
    end_release();
  }

  async_options how_;
  bool is_busy_ = false;
  bool may_step_here_ = false;
  bool is_abandoned_ = false;
  std::optional<Core> core_;     // empty after the session was abandoned and its last operation has ended
  std::vector<script> scripts_;  // more than one inside a step function
  std::shared_ptr<coro::offloaded_call> running_;
  source_registrations sources_;
  std::shared_ptr<release_state> release_ = std::make_shared<release_state>();
  std::shared_ptr<void> unreleased_ = release_at_end(release_);
};

}  // namespace stepwell::detail
