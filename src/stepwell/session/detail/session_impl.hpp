// SPDX-License-Identifier: Apache-2.0
//
// The implementation of a session: its engine, with the raw session and the hooks on which the engine works.
#pragma once

#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/protocol/detail/boundary_requests.hpp"
#include "stepwell/protocol/detail/hook_set.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/session/detail/session_engine.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace stepwell {

/// The engine of a session over `Raw` with the hooks `Held`.
/// @lifetime It does not move: its address stays the same.
template<raw_session Raw, class... Held>
class session_impl final : public session_engine {
  static_assert(sizeof(detail::checked_raw_session<Raw>) > 0);

public:
  using raw_type = Raw;

  session_impl(session_setup&& setup, detail::raw_origin<Raw>&& origin, Held... hooks)
      : session_engine(std::move(setup), origin.given.has_value(), may_trace()), maker_(std::move(origin.make)),
        raw_(std::move(origin.given)), hooks_(std::move(hooks)...) {}

  /// Returns true if a hook of this session may request a trace.
  static consteval bool may_trace() { return hook_set<Raw, Held...>::may_trace(); }

  [[nodiscard]] Raw& raw() noexcept { return *raw_; }
  [[nodiscard]] bool has_raw() const noexcept override { return raw_.has_value(); }
  [[nodiscard]] auto& hooks() noexcept { return hooks_; }

  /// Returns true if the boundary has anything to do.
  [[nodiscard, gnu::always_inline]] bool boundary_due() const noexcept { return is_boundary_due(may_trace()); }

  /// Begins a run: clears the failure of an earlier run, calls `before_run` of the hooks, and merges their requests with those of the caller.
  /// @errors Exceptions of hooks; `failed_precondition_error` if one key is fed twice.
  /// @see contract RUN-3, RUN-5
  template<bool Traced, class Caller>
  auto prepare(run_context<Raw>& context, const Caller& caller) {
    if (failure_) [[unlikely]] { forget_failure(); }
    state_.to_within_step(detail::session_phase::stepping);
    constexpr bool marks = hook_set<Raw, Held...>::may_use_group_before_run();
    if constexpr (marks) { is_before_step_ = true; }
    auto request = run_request(caller, hooks_.template before_run<typename Caller::hook_choice, Traced>(context));
    if constexpr (marks) { is_before_step_ = false; }
    return request;
  }
  /// Calls `after_run` of the hooks, and ends the run. @see contract RUN-10
  /// @errors `aborted_error` if a hook requested a rollback.
  template<bool Traced, class Order, class Outcome>
  [[gnu::always_inline]] void finish(run_context<Raw>& context, const Order& order, const Outcome& outcome, std::int64_t step_after) {
    hooks_.template after_run<typename Order::hook_choice, Traced>(context, order.hooks(), *raw_, outcome,
                                                                   {&order.options(), &order.metadata()});
    last_step_done_.store(step_after, std::memory_order_relaxed);
    if (requests_.rollback()) [[unlikely]] { roll_back(); }
    state_.to_within_step(detail::session_phase::ready);
  }

  /// Ends a run that was cancelled before its step was done. No failure is reported.
  void cancel_run() noexcept {
    requests_.drop_saves();
    state_.to_within_step(detail::session_phase::ready);
  }

private:
  [[nodiscard]] std::int64_t raw_step() const noexcept override { return raw_->global_step(); }
  [[nodiscard]] variable_list raw_variables() override { return raw_->variables(); }
  [[nodiscard]] update_fence* fence() noexcept override { return raw_ ? detail::fence_of(*raw_) : nullptr; }
  void while_alone(function_ref<void()> action) override {
    [[maybe_unused]] const auto alone = detail::alone_with(*raw_);
    action();
  }
  void with_values(function_ref<void()> action) override {
    [[maybe_unused]] const auto alone = detail::alone_with(*raw_);
    [[maybe_unused]] const auto values = detail::pull_variables(*raw_);
    action();
  }
  void make(session_creation& creation) override { maker_(raw_, creation); }
  void push() override { detail::push_variables(*raw_); }
  void close_made() override {
    if constexpr (detail::has_close<Raw>) { raw_->close(); }
  }

  [[nodiscard]] variable_list hook_variables() override { return hooks_.state(); }
  [[nodiscard]] detail::hook_call take_failed_call() noexcept override { return hooks_.take_failed_call(); }
  void begin_hooks() override { hooks_.template call<detail::begin_point>(); }
  void notify_created() override {
    session_handle<Raw> handle(*raw_, requests_);
    hooks_.template call<detail::after_create_session_point>(handle, threads_);
  }
  void notify_failure(const std::exception_ptr& failure, int attempt) noexcept override {
    run_context<Raw> context(*raw_, requests_, attempt);
    hooks_.on_error(context, failure);
  }
  bool request_save() override {
    session_handle<Raw> handle(*raw_, requests_);
    return hooks_.save_now(handle);
  }
  void end_hooks(detail::error_collector& failures) override {
    session_handle<Raw> handle(*raw_, requests_);
    hooks_.end(handle, failures);
  }

  detail::raw_maker<Raw> maker_;
  std::optional<Raw> raw_;
  hook_set<Raw, Held...> hooks_;
};

}  // namespace stepwell
