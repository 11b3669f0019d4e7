// SPDX-License-Identifier: Apache-2.0
//
// Hooks chosen while the program runs: one of any type, or a list of them, as one hook of a session.
#pragma once

#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/detail/type_name.hpp"
#include "stepwell/hook/detail/first_failure.hpp"
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

/// What an erased hook asks of a run, as far as the session sees: how it is done. What it fetches stays between it and the run.
using erased_request = std::optional<run_args<fetch_pack<>, feed_pack<>, run_options>>;

namespace detail {

/// Any hook over `Raw`, behind virtual calls.
template<class Raw>
class erased_hook {
public:
  virtual ~erased_hook() = default;
  virtual void begin() = 0;
  virtual void after_create_session(session_handle<Raw>& session, coordinator& threads) = 0;
  /// The options it asks for, or null. @lifetime Until the next call.
  virtual const run_options* before_run(run_context<Raw>& context) = 0;
  virtual void after_run(run_context<Raw>& context, const Raw& raw, const typename Raw::outcome_type& outcome,
                         const run_conditions& how) = 0;
  virtual void on_error(run_context<Raw>& context, const std::exception_ptr& failure) = 0;
  virtual void end(session_handle<Raw>& session) = 0;
  virtual void add_state_to(hook_states& all) = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// The hook, if it is of that type; else null.
  [[nodiscard]] virtual void* find(const type_key& type) noexcept = 0;
};

template<class Raw, class Held>
class held_hook final : public erased_hook<Raw> {
  using hook_type = hook_type_of<Held>;
  using on = checked_hook<Raw, hook_type>;
  using request_type = request_of<hook_type, Raw>;
  static_assert(sizeof(on) > 0);  // checked now
  static_assert(!awaited_points<Raw, hook_type>::any, "stepwell: any_hook cannot hold a hook whose points are awaited");
  static_assert(!conditional_hook<Held>, "stepwell: chief_only goes around any_hook, not into it");
  static_assert(std::tuple_size_v<decltype(std::declval<const request_type&>().feeds())> == 0,
                "stepwell: any_hook cannot hold a hook that feeds: what is fed must be known when the session is compiled; give "
                "that hook itself to the session");

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
                 [[maybe_unused]] const typename Raw::outcome_type& outcome, [[maybe_unused]] const run_conditions& how) override {
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
  std::optional<request_type> request_;  // of the run under way
};

}  // namespace detail

/// One hook of any type over `Raw`, for programs that choose their hooks at run time: `any_hook<raw>(my_hook{...})`.
///
/// All points work, fetched values included, and state is saved under the hook's own names. Two things a session has to know
/// when it is compiled: the phase, which is `Phase` whatever the type of the hook says; and what is fed, so a hook that feeds
/// does not compile.
/// @cost A virtual call a point; a session with such a hook looks in each run whether it is traced.
template<class Raw, hook_phase Phase = hook_phase::user>
class any_hook {
public:
  static constexpr auto phase = Phase;
  using values_type = run_values<Raw, typename Raw::outcome_type, fetch_pack<>>;

  /// Takes the hook, or a `std::ref` of it.
  template<class Held>
    requires(!std::is_same_v<Held, any_hook>)
  explicit any_hook(Held hook) : hook_(std::make_unique<detail::held_hook<Raw, Held>>(std::move(hook))) {}

  /// The type of the hook inside.
  [[nodiscard]] std::string_view name() const noexcept { return hook_->name(); }
  /// The hook inside, if it is a `Hook`; else null.
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

/// As many of them as the program likes, called in the order of the list, as if each had been given to the session at this
/// place: each is ended, also after one whose `end` throws (D-20), and each hears of errors.
template<class Raw, hook_phase Phase = hook_phase::user>
class any_hooks {
public:
  static constexpr auto phase = Phase;
  using hook_type = any_hook<Raw, Phase>;

  any_hooks() = default;
  explicit any_hooks(std::vector<hook_type> hooks) : hooks_(std::move(hooks)) {}

  /// @pre Not given to a session yet.
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
      detail::log_failure("a hook's on_error threw; hooks only observe errors", [&] { hook.on_error(context, failure); });
    }
  }
  void end(session_handle<Raw>& session) {
    detail::first_failure failures;
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
