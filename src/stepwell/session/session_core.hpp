// SPDX-License-Identifier: Apache-2.0
//
// The pieces of a step and of a session's life. None of them suspends: blocking and awaited calls are thin drivers over
// these same pieces.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/session/first_failure.hpp"
#include "stepwell/session/hook_set.hpp"
#include "stepwell/session/raw_session.hpp"
#include "stepwell/session/run_context.hpp"
#include "stepwell/session/run_order.hpp"
#include "stepwell/session/run_trace.hpp"
#include "stepwell/session/session_creation.hpp"
#include "stepwell/session/session_life.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

/// A session's working parts, at a fixed address for as long as it lives.
template<raw_session Raw, class... Held>
class session_core : public session_life {
public:
  /// Makes the raw session ready, for the first time or anew.
  using creator = std::function<void(std::optional<Raw>&, session_creation&)>;

  /// Nothing has begun.
  session_core(session_settings settings, std::optional<Raw> raw, creator create, Held... hooks)
      : session_life(std::move(settings)), create_raw_(std::move(create)), raw_(std::move(raw)), is_given_(raw_.has_value()),
        hooks_(std::move(hooks)...) {}

  /// Looks for a checkpoint, begins the hooks, each once; the session is then to be created.
  /// @errors What looking throws, before any hook has begun or written anything; what a hook's `begin` throws.
  void begin() {
    look_ahead();
    hooks_.begin();
  }
  using session_life::look_ahead;

  /// Whether a hook of this session may have it traced.
  static consteval bool may_trace() { return hook_set<Raw, Held...>::may_trace(); }

  [[nodiscard]] Raw& raw() noexcept { return *raw_; }
  /// A raw session that is not given is there once it was created.
  [[nodiscard]] bool has_raw() const noexcept { return raw_.has_value(); }
  [[nodiscard]] auto& hooks() noexcept { return hooks_; }
  [[nodiscard]] auto& threads() noexcept { return threads_; }

  using awaited_hooks = detail::awaited_hooks<Raw, Held...>;
  /// Whether hooks are awaited anywhere, or in runs; see `hook_set`.
  static consteval bool awaits_hooks() { return hook_set<Raw, Held...>::awaits(); }
  static consteval bool awaits_hooks_in_runs() { return hook_set<Raw, Held...>::awaits_in_runs(); }
  [[nodiscard]] bool hooks_wait([[maybe_unused]] int attempt) {
    if constexpr (awaits_hooks_in_runs()) {
      run_context<Raw> context(*raw_, control_, attempt);
      return hooks_.ask_whether_to_await(context);
    } else {
      return false;
    }
  }

  /// Before a run: true when the session has to be made anew first (contract WRAP-4).
  /// @errors `failed_precondition_error` after the end (RUN-1).
  [[nodiscard, gnu::always_inline]] bool recovery_due() {
    if (!is_closed_ && control_.signals()->clear_to_run()) [[likely]] { return false; }
    refuse_when_over();
    return must_recover();
  }
  /// Whether the session has to be made anew, without a look at its end.
  [[nodiscard]] bool must_recover() { return control_.signals()->recovery_asked() && (is_lost_ || failed_by_thread()); }

  /// A failure before it is nobody's any more.
  [[gnu::always_inline]] void begin_run() {
    if (failure_) [[unlikely]] { forget_failure(); }
  }
  /// Hooks say what they want (contract RUN-3); with what the caller wants that makes the order of the run.
  /// @errors What hooks throw; `failed_precondition_error` when one key is fed twice (RUN-5).
  template<bool Traced, class Caller>
  auto prepare(run_context<Raw>& context, const Caller& caller) {
    begin_run();
    return run_order(caller, hooks_.template before_run<typename Caller::hook_choice, Traced>(context));
  }

  /// Hooks see what came (RUN-10).
  /// @errors `aborted_error` when a hook asked to roll back.
  template<bool Traced, class Order, class Outcome>
  [[gnu::always_inline]] void finish(run_context<Raw>& context, const Order& order, const Outcome& outcome) {
    hooks_.template after_run<typename Order::hook_choice, Traced>(context, order.hooks(), *raw_, outcome,
                                                                   {&order.options(), &order.metadata()});
    end_run(outcome.step_after);
  }
  /// All hooks have seen the run. @errors `aborted_error` when one asked to roll back.
  [[gnu::always_inline]] void end_run(std::int64_t step_after) {
    last_step_done_ = step_after;
    if (control_.rollback_asked()) [[unlikely]] { roll_back(); }
  }

  /// Whether the boundary has anything to do.
  [[nodiscard]] bool boundary_due() const noexcept {
    if constexpr (may_trace()) {
      if (control_.trace()) [[unlikely]] { return true; }
    }
    return control_.due();
  }
  /// The session does what hooks requested, now that all of them have run.
  void boundary() {
    if (boundary_due()) [[unlikely]] { keep_boundary(); }
  }

  /// The same after a step: what fails is told to the hooks.
  [[gnu::always_inline]] void boundary_or_fail() {
    if (boundary_due()) [[unlikely]] { keep_boundary_or_fail(); }
  }

  /// Has the hooks that save do so now, and waits until that is durable; the step that is saved.
  /// @errors `failed_precondition_error` where no hook saves, or the state is bad; why it could not be saved.
  std::int64_t save_now() {
    refuse_when_over();
    refuse_bad_state();
    control_.drain(deadline::never(*control_.time()));  // what is under way makes room
    session_handle<Raw> handle(*raw_, control_);
    if (!hooks_.save_now(handle)) { throw failed_precondition_error("no hook of this session saves checkpoints"); }
    boundary_or_fail();
    control_.drain(deadline::never(*control_.time()));
    return raw_->global_step();
  }

  /// A copy of all that a checkpoint would hold, as it is between two steps; without `memory` into some of its own.
  /// @errors Those of `refuse_copy` and `snapshot::capture`.
  snapshot copy_state(std::optional<snapshot_pool::buffer> memory) {
    refuse_copy();
    [[maybe_unused]] const auto alone = alone_with(*raw_);
    const auto state = compose();
    if (!memory) { memory = snapshot_pool(snapshot_size(state.variables), 1).try_acquire(); }
    return snapshot::capture(std::move(*memory), state.variables, state.global_step);
  }

  /// Tells the hooks of a failure and forgets what the failed step requested.
  [[gnu::noinline, gnu::cold]] void on_failure(step_stage stage, std::exception_ptr failure, int attempt = 1) noexcept {
    control_.drop_requests();
    failure_ = failure;
    failed_stage_ = stage;
    is_half_stepped_ = is_half_stepped_ || (stage != step_stage::source && stage != step_stage::boundary);
    control_.end_trace();
    control_.signals()->note_failure(reason_of(failure, stage == step_stage::run || stage == step_stage::source));
    if (!raw_) { return; }  // there never was a session to tell them of
    run_context<Raw> context(*raw_, control_, attempt);
    hooks_.on_error(context, failure);
  }

  /// Leaves the session that failed: threads are joined, what is being saved is finished. When the next try is due.
  /// @errors The last failure, when there is no further try; then the session is lost, and `should_stop` says so.
  ///         What comes out of joining and finishing, other than what a recovery may overcome (contract REC-4).
  clock::time_point plan_recovery() {
    control_.signals()->ask_to_recover();  // by whoever comes next, unless we succeed
    control_.reject_state("recovery has not succeeded");
    skip_batch_ = false;
    try {
      leave();
      return recovery_.next(failure_, last_step_done_);
    } catch (...) {
      is_lost_ = true;
      throw;
    }
  }

  /// Creates the session, for the first time or anew (REC-6). False: it failed in a way that may pass.
  /// @errors Everything else that creating throws. After an interruption `cancelled_error`: it is to be created as before.
  bool create() {
    return creates([this] {
      make_raw();
      session_handle<Raw> handle(*raw_, control_);
      hooks_.after_create_session(handle, threads_);
      settle();
    });
  }
  /// A part of creating: `make_raw()`, telling the hooks, or `settle()`. As `create`.
  template<class Part>
  bool creates(Part&& part) {
    try {
      part();
      return true;
    } catch (...) {
      if (gave_up_waiting(std::current_exception())) { throw; }
      on_failure(step_stage::creation, std::current_exception());
      if (can_recover()) { return false; }
      control_.reject_state("the session could not be made");
      is_lost_ = true;
      leave_threads();
      throw;
    }
  }

  /// The raw session, ready, and its threads; hooks are told next.
  void make_raw() {
    const bool is_first = creations_ == 0;
    control_.begin_creation();
    threads_.clear_stop();
    is_left_ = false;
    if (raw_ && is_first) { check_names(); }
    session_creation creation(control_, positions_, initial_, [this] { return hooks_.state(); }, search_, is_first);
    create_raw_(raw_, creation);
    search_.forget_ahead();
    check_names();
    joins_others_ = creation.is_joining();
    starts_at_ = creation.starts_at().value_or(raw_->global_step());
    if (!joins_others_) { positions_.go_back(starts_at_); }
    control_.accept_state();
    note_created(is_first);
    start_runners();
  }
  /// Does what hooks requested when they were told; then the session is created.
  void settle() {
    boundary();
    control_.drop_rollback();
    control_.end_creation();
    is_half_stepped_ = false;
    is_lost_ = false;
    control_.signals()->recovered();
  }

  /// How far it came. Where others share the step it may have gone back before this session notices.
  [[nodiscard]] std::int64_t step_reached() const noexcept {
    return joins_others_ ? std::max<std::int64_t>(raw_->global_step(), last_step_done_) : raw_->global_step();
  }

  /// Ends the hooks, makes the last save, waits for all threads and I/O (CLOSE-1). Does nothing the second time (D-15).
  void close() {
    if (!begin_to_close()) { return; }
    const auto until = grace();
    detail::first_failure failures;
    session_handle<Raw> handle(*raw_, control_);
    hooks_.end(handle, failures);
    finish_closing(until, failures);
  }
  /// From here on it is closed: hooks are ended next. False where it was.
  [[nodiscard]] bool begin_to_close() noexcept {
    if (is_closed_.exchange(true)) { return false; }
    is_closing_ = true;
    return true;
  }
  using session_life::grace;
  /// Hooks are ended, as `failures` says; the rest of closing. @errors The first failure of all.
  void finish_closing(const deadline& until, detail::first_failure& failures) {
    is_closing_ = false;
    failures.attempt([&] {
      [[maybe_unused]] const detail::run_part<may_trace()> part(control_.trace(), "boundary");
      act(until);
    });
    control_.end_trace();
    if (threads_.should_stop()) { control_.signals()->request_stop(stop_of_threads()); }
    threads_.request_stop();
    failures.attempt([&] { control_.drain_and_flush(until); });
    failures.attempt([&] { overcome_or_throw([&] { join(until); }); });
    close_raw();
    if (failures.get()) {
      on_failure(step_stage::boundary, failures.get());
      failures.rethrow();
    }
  }

  /// Leaves by an error (CLOSE-5): hooks hear of it unless they have, none is ended, all I/O under way is finished.
  void abandon(std::exception_ptr failure) noexcept {
    if (is_closed_.exchange(true)) { return; }
    if (failure == nullptr ? failure_ == nullptr : failure != failure_) { on_failure(step_stage::boundary, failure); }
    control_.drop_requests();
    threads_.request_stop();
    const auto until = grace();
    detail::log_failure("while leaving after an error", [&] { control_.drain_and_flush(until); });
    detail::log_failure("while leaving after an error", [&] { join(until); });
    close_raw();
  }

  /// Leaves without a word to the hooks, none of which is ended, and waits for no I/O: what is under way goes on alone. The
  /// session's threads are joined.
  void let_go() noexcept {
    if (is_closed_.exchange(true) && !std::exchange(is_closing_, false)) { return; }
    control_.end_trace();
    control_.drop_requests();
    threads_.request_stop();
    leave_work();
    detail::log_failure("while letting a session go", [&] { join(grace()); });
    close_raw();
  }

private:
  void note_created(bool is_first) {
    ++creations_;
    if (const auto& prefix = control_.restored_from()) {
      log_info("restored " + *prefix + "; going on after step " + std::to_string(raw_->global_step()));
    }
    if (is_first) { return; }
    answer_rollback();
  }

  [[gnu::noinline, gnu::cold]] void keep_boundary_or_fail() {
    try {
      keep_boundary();
    } catch (...) {
      on_failure(step_stage::boundary, std::current_exception());
      throw;
    }
  }
  void keep_boundary() {
    if constexpr (may_trace()) {
      if (control_.trace()) {
        return detail::keep_traced_boundary(control_, [this] { act(deadline::never(*control_.time())); });
      }
    }
    act(deadline::never(*control_.time()));
  }

  void act(const deadline& until) {
    std::optional<decltype(alone_with(*raw_))> alone;  // nobody steps while the state is copied
    control_.act(
        [&] {
          alone.emplace(alone_with(*raw_));
          return compose();
        },
        until);
    if (settings_.restores_what_it_saves && initial_.is_kept() && control_.signals()->has_checkpoint()) { initial_.forget(); }
  }

  void check_names() {
    [[maybe_unused]] const auto alone = alone_with(*raw_);
    static_cast<void>(compose());
  }

  boundary_state compose() {
    boundary_state state{raw_->global_step(), raw_->variables()};
    const auto append = [&](variable_list more) {
      for (auto& variable : more) { state.variables.push_back(std::move(variable)); }
    };
    append(hooks_.state());
    append(positions_.variables());
    state.variables.emplace_back(std::string(version_name), state_version_);
    return state;
  }

  /// REC-2: the session that failed is left, whatever a recovery may overcome being logged.
  void leave() {
    if (threads_.should_stop() && !threads_.failure() && !is_left_) { control_.signals()->request_stop(stop_of_threads()); }  // D-12
    threads_.request_stop();
    const auto until = grace();
    detail::first_failure failures;
    failures.attempt([&] { overcome_or_throw([&] { join(until); }); });
    failures.attempt([&] { overcome_or_throw([&] { control_.drain(until); }); });
    if (!is_given_) { close_raw(); }  // one that is given serves the next session, too
    is_left_ = true;
    if (!failures.get()) { return; }
    on_failure(step_stage::boundary, failures.get());
    failures.rethrow();
  }

  /// What that throws is logged, no more (contract WRAP-7).
  void close_raw() noexcept {
    if (is_closed_) { leave_process(); }
    if constexpr (requires(Raw& raw) { raw.close(); }) {
      if (raw_) {
        detail::log_failure("while closing the raw session", [&] { raw_->close(); });
      }
    }
  }

  /// Cold: whether a thread did fail as `stopped_by_threads` found. The answer may be older than the present session.
  bool failed_by_thread() noexcept {
    auto failure = threads_.failure();
    const bool is_due = recovery_.is_overcome(failure);
    if (is_due) {
      on_failure(step_stage::boundary, std::move(failure));
    } else {
      control_.signals()->recovered();
    }
    return is_due;
  }

  creator create_raw_;
  std::optional<Raw> raw_;
  bool is_given_;
  bool is_closing_ = false;  // its hooks are being ended
  hook_set<Raw, Held...> hooks_;
  std::int64_t state_version_ = state_version;
};

}  // namespace stepwell
