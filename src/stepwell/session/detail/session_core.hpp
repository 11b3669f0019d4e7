// SPDX-License-Identifier: Apache-2.0
//
// The pieces of a step, and the raw session and hooks that the pieces of a session's life work on. None of them suspends:
// blocking and awaited calls are thin drivers over these same pieces.
#pragma once

#include "stepwell/base/function_ref.hpp"
#include "stepwell/creation/detail/raw_maker.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/hook/detail/first_failure.hpp"
#include "stepwell/hook/detail/hook_set.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/hook/run_request.hpp"
#include "stepwell/session/detail/session_frame.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

namespace stepwell {

/// A session's working parts, at a fixed address for as long as it lives.
template<raw_session Raw, class... Held>
class session_core final : public session_frame {
public:
  /// Nothing has begun.
  session_core(session_settings settings, std::optional<Raw> raw, detail::raw_maker_ptr<Raw> maker, Held... hooks)
      : session_frame(std::move(settings), raw.has_value(), may_trace()), maker_(std::move(maker)), raw_(std::move(raw)),
        hooks_(std::move(hooks)...) {}

  /// Looks for a checkpoint, begins the hooks, each once; the session is then to be created.
  /// @errors What looking throws, before any hook has begun or written anything; what a hook's `begin` throws.
  void begin() {
    look_ahead();
    hooks_.begin();
  }

  /// Whether a hook of this session may have it traced.
  static consteval bool may_trace() { return hook_set<Raw, Held...>::may_trace(); }

  [[nodiscard]] Raw& raw() noexcept { return *raw_; }
  [[nodiscard]] bool has_raw() const noexcept override { return raw_.has_value(); }
  [[nodiscard]] auto& hooks() noexcept { return hooks_; }

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

  /// A failure before it is nobody's any more.
  [[gnu::always_inline]] void begin_run() {
    if (failure_) [[unlikely]] { forget_failure(); }
  }
  /// Hooks say what they want (contract RUN-3); with what the caller wants that makes the order of the run.
  /// @errors What hooks throw; `failed_precondition_error` when one key is fed twice (RUN-5).
  template<bool Traced, class Caller>
  auto prepare(run_context<Raw>& context, const Caller& caller) {
    begin_run();
    return run_request(caller, hooks_.template before_run<typename Caller::hook_choice, Traced>(context));
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
  [[nodiscard]] bool boundary_due() const noexcept { return is_boundary_due(may_trace()); }
  /// The session does what hooks requested, now that all of them have run. What fails is told to the hooks.
  [[gnu::always_inline]] void boundary_or_fail() {
    if (boundary_due()) [[unlikely]] { keep_boundary_or_fail(); }
  }

private:
  [[nodiscard]] std::int64_t raw_step() const noexcept override { return raw_->global_step(); }
  [[nodiscard]] variable_list raw_variables() override { return raw_->variables(); }
  void while_alone(function_ref<void()> action) override {
    [[maybe_unused]] const auto alone = stepwell::alone_with(*raw_);
    action();
  }
  void make(session_creation& creation) override { maker_->make(raw_, creation); }
  void close_made() override {
    if constexpr (requires(Raw& raw) { raw.close(); }) { raw_->close(); }
  }

  [[nodiscard]] variable_list hook_variables() override { return hooks_.state(); }
  void tell_of_creation() override {
    if constexpr (!awaits_hooks()) {  // those are visited, see async_core
      session_handle<Raw> handle(*raw_, control_);
      hooks_.after_create_session(handle, threads_);
    }
  }
  void tell_of_failure(const std::exception_ptr& failure, int attempt) noexcept override {
    run_context<Raw> context(*raw_, control_, attempt);
    hooks_.on_error(context, failure);
  }
  bool ask_to_save() override {
    session_handle<Raw> handle(*raw_, control_);
    return hooks_.save_now(handle);
  }
  void end_hooks([[maybe_unused]] detail::first_failure& failures) override {
    if constexpr (!awaits_hooks()) {
      session_handle<Raw> handle(*raw_, control_);
      hooks_.end(handle, failures);
    }
  }

  detail::raw_maker_ptr<Raw> maker_;
  std::optional<Raw> raw_;
  hook_set<Raw, Held...> hooks_;
};

}  // namespace stepwell
