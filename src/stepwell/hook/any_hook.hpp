// SPDX-License-Identifier: Apache-2.0
//
// Type-erased hooks for programs that choose their hooks at run time: one hook of any type, or a list of them.
#pragma once

#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/detail/type_name.hpp"
#include "stepwell/hook/detail/error_collector.hpp"
#include "stepwell/hook/detail/hook_set.hpp"
#include "stepwell/hook/detail/run_trace.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hook/run_args.hpp"
#include "stepwell/hook/run_context.hpp"
#include "stepwell/hook/run_options.hpp"
#include "stepwell/hook/stateful_hook.hpp"
#include "stepwell/threads/coordinator.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// The request of a type-erased hook. The session sees its options only. The hook reads its fetches directly from the outcome of the run.
using erased_request = std::optional<run_args<fetch_pack<>, feed_pack<>, run_options>>;

namespace detail {

/// Interface of any hook over `Raw`, with virtual calls.
template<class Raw>
class erased_hook {
public:
  virtual ~erased_hook() = default;
  virtual void begin() = 0;
  virtual void after_create_session(session_handle<Raw>& session, coordinator& threads) = 0;
  /// Calls `before_run` of the hook. Returns the options that the hook requests, or null.
  /// @lifetime Valid until the next call.
  virtual const run_options* before_run(run_context<Raw>& context) = 0;
  virtual void after_run(run_context<Raw>& context, const Raw& raw, const typename Raw::outcome_type& outcome, const run_info& how) = 0;
  virtual void on_error(run_context<Raw>& context, const std::exception_ptr& failure) = 0;
  virtual void end(session_handle<Raw>& session) = 0;
  virtual void add_state_to(hook_states& all) = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Returns the hook if its type is `type`, else null.
  [[nodiscard]] virtual void* find(const type_key& type) noexcept = 0;
};

template<class Raw, class Held>
class held_hook final : public erased_hook<Raw> {
  using hook_type = hook_type_of<Held>;
  using on = checked_hook<Raw, hook_type>;
  using request_type = request_of<hook_type, Raw>;
  static_assert(sizeof(on) > 0);  // instantiates the checks here
  static_assert(!awaited_points<Raw, hook_type>::any, "stepwell: any_hook cannot hold a hook with awaited calls");
  static_assert(!conditional_hook<Held>, "stepwell: any_hook cannot hold chief_only; give chief_only an any_hook instead");
  static_assert(std::tuple_size_v<decltype(std::declval<const request_type&>().feeds())> == 0,
                "stepwell: any_hook cannot hold a hook that feeds: feeds must be known at compile time; give that hook "
                "itself to the session");

public:
  explicit held_hook(Held&& hook) : held_(std::move(hook)) {}

  void begin() override {
    if constexpr (on::has_begin) { hook().begin(); }
  }
  void after_create_session([[maybe_unused]] session_handle<Raw>& session, [[maybe_unused]] coordinator& threads) override {
    if constexpr (on::has_after_create_session) { hook().after_create_session(session, threads); }
  }
  const run_options* before_run([[maybe_unused]] run_context<Raw>& context) override {
    if constexpr (on::has_before_run) {
      const traced_part part(context.trace(), name_of_call<hook_type, hook_point::before_run>());
      if constexpr (std::is_void_v<decltype(hook().before_run(context))>) {
        hook().before_run(context);
      } else {
        request_.emplace(detail::as_request(hook().before_run(context)));
      }
    }
    if constexpr (request_type::has_options) {
      return request_->options();
    } else {
      return nullptr;
    }
  }
  void after_run([[maybe_unused]] run_context<Raw>& context, [[maybe_unused]] const Raw& raw,
                 [[maybe_unused]] const typename Raw::outcome_type& outcome, [[maybe_unused]] const run_info& how) override {
    if constexpr (on::has_after_run) {
      const traced_part part(context.trace(), name_of_call<hook_type, hook_point::after_run>());
      const values_of<hook_type, Raw> values(raw, outcome, pack(), how);
      hook().after_run(context, values);
    }
  }
  void on_error([[maybe_unused]] run_context<Raw>& context, [[maybe_unused]] const std::exception_ptr& failure) override {
    if constexpr (on::has_on_error) { hook().on_error(context, failure); }
  }
  void end([[maybe_unused]] session_handle<Raw>& session) override {
    if constexpr (on::has_end) {
      const traced_part part(session.trace(), name_of_call<hook_type, hook_point::end>());
      hook().end(session);
    }
  }
  void add_state_to(hook_states& all) override { all.add(hook()); }

  [[nodiscard]] std::string_view name() const noexcept override { return type_name<hook_type>(); }
  [[nodiscard]] void* find(const type_key& type) noexcept override { return type == type_key::of<hook_type>() ? &hook() : nullptr; }

private:
  [[nodiscard]] hook_type& hook() noexcept { return hook_access<Held>::get(held_); }
  [[nodiscard]] const auto* pack() const noexcept {
    if constexpr (std::is_same_v<request_type, no_request>) {
      return no_request::pack();
    } else {
      return request_->pack();
    }
  }

  Held held_;
  std::optional<request_type> request_;  // request of the current run
};

}  // namespace detail

/// One hook of any type over `Raw`, for programs that choose their hooks at run time: `any_hook<raw>(my_hook{...})`.
///
/// All points of the hook are called, and fetched values work. State is saved under the hook's own name. A session needs two facts at
/// compile time. The first is the phase: it is `Phase`, and a `phase` of the hook's type is ignored. The second is the set of feeds: a hook
/// that feeds does not compile.
/// @cost One virtual call for each point. A session with such a hook checks in each run whether the run is traced.
template<class Raw, hook_phase Phase = hook_phase::user>
class any_hook {
public:
  static constexpr auto phase = Phase;
  using values_type = run_values<Raw, typename Raw::outcome_type, fetch_pack<>>;

  /// Holds `hook`, which may be a `std::ref` to a hook.
  template<class Held>
    requires(!std::is_same_v<Held, any_hook>)
  explicit any_hook(Held hook) : hook_(std::make_unique<detail::held_hook<Raw, Held>>(std::move(hook))) {}

  /// Returns the name of the type of the held hook.
  [[nodiscard]] std::string_view name() const noexcept { return hook_->name(); }
  /// Returns the held hook if its type is `Hook`, else null.
  template<class Hook>
  [[nodiscard]] Hook* get_if() noexcept {
    return static_cast<Hook*>(hook_->find(type_key::of<Hook>()));
  }

  void begin() { hook_->begin(); }
  void after_create_session(session_handle<Raw>& session, coordinator& threads) { hook_->after_create_session(session, threads); }
  [[nodiscard]] erased_request before_run(run_context<Raw>& context) {
    if (const auto* options = hook_->before_run(context)) { return run_args{.options = *options}; }
    return std::nullopt;
  }
  void after_run(run_context<Raw>& context, const values_type& values) {
    hook_->after_run(context, values.raw(), values.outcome(), values.conditions());
  }
  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) { hook_->on_error(context, failure); }
  void end(session_handle<Raw>& session) { hook_->end(session); }
  void add_state_to(hook_states& all) { hook_->add_state_to(all); }

private:
  std::unique_ptr<detail::erased_hook<Raw>> hook_;
};

/// A list of hooks, chosen at run time and called in the order of the list, as if each hook were given to the session at this position.
/// `end` of each hook is called, even if `end` of an earlier hook throws. Each hook is notified of errors.
/// @see contract D-20
template<class Raw, hook_phase Phase = hook_phase::user>
class any_hooks {
public:
  static constexpr auto phase = Phase;
  using hook_type = any_hook<Raw, Phase>;

  any_hooks() = default;
  explicit any_hooks(std::vector<hook_type> hooks) : hooks_(std::move(hooks)) {}

  /// Appends `hook` to the list.
  /// @pre This object is not owned by a session yet.
  void add(hook_type hook) { hooks_.push_back(std::move(hook)); }
  [[nodiscard]] std::vector<hook_type>& hooks() noexcept { return hooks_; }

  void begin() {
    for (auto& hook : hooks_) { hook.begin(); }
  }
  void after_create_session(session_handle<Raw>& session, coordinator& threads) {
    for (auto& hook : hooks_) { hook.after_create_session(session, threads); }
  }
  [[nodiscard]] erased_request before_run(run_context<Raw>& context) {
    erased_request all;
    for (auto& hook : hooks_) {
      auto one = hook.before_run(context);
      if (!one) { continue; }
      if (all) {
        merge(all->options, one->options);
      } else {
        all.emplace(std::move(*one));
      }
    }
    return all;
  }
  void after_run(run_context<Raw>& context, const typename hook_type::values_type& values) {
    for (auto& hook : hooks_) { hook.after_run(context, values); }
  }
  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept {
    for (auto& hook : hooks_) {
      detail::log_failure("ignored exception from a hook's on_error", [&] { hook.on_error(context, failure); });
    }
  }
  void end(session_handle<Raw>& session) {
    detail::error_collector failures;
    for (auto& hook : hooks_) {
      failures.attempt([&] { hook.end(session); });
    }
    failures.rethrow();
  }
  void add_state_to(hook_states& all) {
    for (auto& hook : hooks_) { hook.add_state_to(all); }
  }

private:
  std::vector<hook_type> hooks_;
};

}  // namespace stepwell
