// SPDX-License-Identifier: Apache-2.0
//
// Type-erased hooks for programs that choose their hooks at run time: one hook of any type, or a list of them.
#pragma once

#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/protocol/detail/hook_set.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

namespace detail {

/// The fetches of a type-erased hook that the raw session can enumerate: a list of keys if `Raw` has a `fetch_key`, otherwise no fetches.
/// In both cases, the hook reads its values directly from the outcome of the run.
template<class Raw>
struct erased_fetches {
  using type = fetch_pack<>;
};
template<class Raw>
  requires has_fetch_key<Raw>
struct erased_fetches<Raw> {
  using type = fetch_list<typename Raw::fetch_key>;
};
template<class Raw>
using erased_fetches_t = typename erased_fetches<Raw>::type;

/// The type of the request of a type-erased hook over `Raw`.
template<class Raw>
using erased_request_of = std::optional<run_args<erased_fetches_t<Raw>, feed_pack<>, run_options>>;

/// Interface of any hook over `Raw`, with virtual calls.
template<class Raw>
class erased_hook {
public:
  virtual ~erased_hook() = default;
  virtual void begin() = 0;
  virtual void after_create_session(session_handle<Raw>& session, coordinator& threads) = 0;
  /// Calls `before_run` of the hook, and adds the request of the hook to `all`.
  virtual void before_run(run_context<Raw>& context, erased_request_of<Raw>& all) = 0;
  virtual void after_run(run_context<Raw>& context, const Raw& raw, const typename Raw::outcome_type& outcome, const run_info& how) = 0;
  virtual void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept = 0;
  virtual void end(session_handle<Raw>& session, error_collector& failures) = 0;
  virtual void add_state_to(hook_states& all) = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// See `hook_set`.
  [[nodiscard]] virtual hook_call take_failed_call() noexcept = 0;
  /// Returns the hook if its type is `type`, else null.
  [[nodiscard]] virtual void* find(const type_key& type) noexcept = 0;
};

/// A hook set of one hook. If a trace recorder is set, it records the calls of the hook as spans.
template<class Raw, class Held>
class held_hook final : public erased_hook<Raw> {
  using hook_type = hook_type_of<Held>;
  using request_type = request_of<hook_type, Raw>;
  static_assert(!conditional_hook<Held>, "stepwell: any_hook cannot hold chief_only; give chief_only an any_hook instead");
  static_assert(std::tuple_size_v<decltype(std::declval<const request_type&>().feeds())> == 0,
                "stepwell: any_hook cannot hold a hook that feeds: feeds must be known at compile time; give that hook "
                "itself to the session");

public:
  explicit held_hook(Held&& hook) : hook_(std::move(hook)) {}

  void begin() override { hook_.template call<begin_point>(); }
  void after_create_session(session_handle<Raw>& session, coordinator& threads) override {
    hook_.template call<after_create_session_point>(session, threads);
  }
  void before_run(run_context<Raw>& context, [[maybe_unused]] erased_request_of<Raw>& all) override {
    request_.emplace(hook_.template before_run<all_hooks, true>(context));
    [[maybe_unused]] const auto& request = std::get<0>(*request_);
    if constexpr (request_type::has_options) {
      if (const auto* options = request.options()) { merge(part_of(all).options, *options); }
    }
    if constexpr (has_fetch_key<Raw>) {
      const auto* fetches = request.pack();
      if (fetches == nullptr) { return; }
      fetches->for_each([&](const auto& fetch) { part_of(all).fetch.projections.emplace_back(fetch); });
    }
  }
  void after_run(run_context<Raw>& context, const Raw& raw, const typename Raw::outcome_type& outcome, const run_info& how) override {
    hook_.template after_run<all_hooks, true>(context, *request_, raw, outcome, how);
  }
  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept override { hook_.on_error(context, failure); }
  void end(session_handle<Raw>& session, error_collector& failures) override { hook_.template end<true>(session, failures); }
  void add_state_to(hook_states& all) override { hook_.add_state_to(all); }

  [[nodiscard]] std::string_view name() const noexcept override { return type_name<hook_type>(); }
  [[nodiscard]] hook_call take_failed_call() noexcept override { return hook_.take_failed_call(); }
  [[nodiscard]] void* find(const type_key& type) noexcept override {
    return type == type_key::of<hook_type>() ? &hook_.template get<hook_type>() : nullptr;
  }

private:
  static auto& part_of(erased_request_of<Raw>& all) { return all ? *all : all.emplace(); }

  hook_set<Raw, Held> hook_;
  std::optional<std::tuple<request_type>> request_;  // request of the current run
};

}  // namespace detail

/// One hook of any type over `Raw`, for programs that choose their hooks at run time: `any_hook<raw>(my_hook{...})`.
///
/// All hook points of the held hook are called, and the hook gets the values that it fetches. The state of the held hook is saved under the
/// hook's own name. The phase of this hook is `Phase`, because a session must know phases at compile time; a `phase` in the type of the
/// held hook is ignored. A hook that feeds values cannot be held, and neither can `chief_only`: give `chief_only` an `any_hook` instead.
/// @errors A session that is created with a moved-from object throws `failed_precondition_error`.
/// @cost One virtual call for each point. A session with an `any_hook` also checks in each run whether the run is traced.
template<class Raw, hook_phase Phase = hook_phase::user>
class any_hook {
public:
  static constexpr auto phase = Phase;
  using values_type = run_values<Raw, typename Raw::outcome_type, detail::erased_fetches_t<Raw>>;

  /// Holds `hook`, which may be a `std::ref` to a hook.
  template<class Held>
    requires(!std::is_same_v<Held, any_hook>)
  explicit any_hook(Held hook) : hook_(std::make_unique<detail::held_hook<Raw, Held>>(std::move(hook))) {
    static_assert(detail::has_every_point<any_hook, Raw>, "stepwell: any_hook lacks a hook point");
  }

  /// Returns the name of the type of the held hook.
  [[nodiscard]] std::string_view name() const noexcept { return hook_ ? hook_->name() : "any_hook"; }
  /// Returns the held hook if its type is `Hook`, else null.
  template<class Hook>
  [[nodiscard]] Hook* get_if() noexcept {
    return hook_ ? static_cast<Hook*>(hook_->find(type_key::of<Hook>())) : nullptr;
  }

  void begin() { held().begin(); }
  void after_create_session(session_handle<Raw>& session, coordinator& threads) { held().after_create_session(session, threads); }
  [[nodiscard]] detail::erased_request_of<Raw> before_run(run_context<Raw>& context) {
    detail::erased_request_of<Raw> request;
    add_request_to(request, context);
    return request;
  }
  /// Calls `before_run` of the held hook, and adds the request of the hook to `all`.
  void add_request_to(detail::erased_request_of<Raw>& all, run_context<Raw>& context) { held().before_run(context, all); }
  void after_run(run_context<Raw>& context, const values_type& values) {
    held().after_run(context, values.raw(), values.outcome(), values.conditions());
  }
  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept {
    if (hook_) { hook_->on_error(context, failure); }
  }
  void end(session_handle<Raw>& session) {
    detail::error_collector failures;
    held().end(session, failures);
    failures.rethrow();
  }
  void add_state_to(hook_states& all) { held().add_state_to(all); }
  /// Returns the call of the held hook that has thrown, for a message of the session. Empty if none has thrown.
  [[nodiscard]] detail::hook_call take_failed_call() noexcept { return hook_ ? hook_->take_failed_call() : detail::hook_call(); }

private:
  /// @errors `failed_precondition_error` if this object was moved from.
  [[nodiscard]] detail::erased_hook<Raw>& held() const {
    if (!hook_) [[unlikely]] {
      throw failed_precondition_error("any_hook: this object was moved from; use the object to which it was moved");
    }
    return *hook_;
  }

  std::unique_ptr<detail::erased_hook<Raw>> hook_;
};

/// A list of hooks, chosen at run time. The list counts as one hook in the order of the session's hooks. The hooks in the list are called
/// one after the other. `end` of each hook is called, even if `end` of an earlier hook throws.
/// @see contract D-20
template<class Raw, hook_phase Phase = hook_phase::user>
class any_hooks {
public:
  static constexpr auto phase = Phase;
  using hook_type = any_hook<Raw, Phase>;

  any_hooks() = default;
  explicit any_hooks(std::vector<hook_type> hooks) : hooks_(std::move(hooks)) {}

  /// Appends `hook`, a hook of any type or an `any_hook`: `hooks.add(stop_at_step(1000))`.
  /// @pre This object is not owned by a session yet.
  template<class Hook>
  void add(Hook hook) {
    hooks_.emplace_back(std::move(hook));
  }
  [[nodiscard]] std::vector<hook_type>& hooks() noexcept { return hooks_; }

  void begin() {
    for (auto& hook : hooks_) { hook.begin(); }
  }
  void after_create_session(session_handle<Raw>& session, coordinator& threads) {
    for (auto& hook : hooks_) { hook.after_create_session(session, threads); }
  }
  [[nodiscard]] detail::erased_request_of<Raw> before_run(run_context<Raw>& context) {
    detail::erased_request_of<Raw> all;
    for (auto& hook : hooks_) { hook.add_request_to(all, context); }
    return all;
  }
  void after_run(run_context<Raw>& context, const typename hook_type::values_type& values) {
    for (auto& hook : hooks_) { hook.after_run(context, values); }
  }
  void on_error(run_context<Raw>& context, const std::exception_ptr& failure) noexcept {
    for (auto& hook : hooks_) { hook.on_error(context, failure); }
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
  /// Returns the first call of a hook that has thrown, for a message of the session. Empty if none has thrown.
  [[nodiscard]] detail::hook_call take_failed_call() noexcept {
    detail::hook_call first;
    for (auto& hook : hooks_) {
      const auto call = hook.take_failed_call();
      if (first.hook.empty()) { first = call; }
    }
    return first;
  }

private:
  std::vector<hook_type> hooks_;
};

}  // namespace stepwell
