// SPDX-License-Identifier: Apache-2.0
//
// Calls of one point of all hooks in a set, in order. Awaitable calls are awaited one at a time; the calls between two of them are made
// together.
#pragma once

#include "stepwell/hook/detail/hook_set.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// The calls of a visit for one hook: at most one of the two is set. `await` returns an invalid awaitable if the hook is not to be called
/// this time.
template<class Visit>
struct hook_call {
  void (*call)(Visit&) = nullptr;
  boost::asio::awaitable<void> (*await)(Visit&) = nullptr;
};

/// Calls the hooks in order. All plain calls between two awaitable calls are passed to `call(function)` as one function. Each awaitable
/// call is passed to `await(awaitable)`. Both return an awaitable.
template<class Visit, class Call, class Await>
boost::asio::awaitable<void> visit_each(Visit& visit, Call& call, Await& await) {
  static constexpr auto all = Visit::calls();
  for (std::size_t next = 0; next < all.size(); ++next) {
    const std::size_t first = next;
    bool is_any = false;
    for (; next < all.size() && all[next].await == nullptr; ++next) { is_any = is_any || all[next].call != nullptr; }
    auto those_before = [&visit, first, next] {
      for (std::size_t i = first; i < next; ++i) {
        if (all[i].call != nullptr) { all[i].call(visit); }
      }
    };
    if (is_any) { co_await call(those_before); }
    if (next == all.size()) { break; }
    auto theirs = all[next].await(visit);
    if (theirs.valid()) { co_await await(std::move(theirs)); }
  }
}

/// The visits of the hooks of a `hook_set<Raw, Held...>`. For the hook with index `I`, a visit has `has<I>`, true if the hook is called,
/// `awaits<I>`, true if that call is awaited, and the functions `call<I>` and `await<I>`, of which one is used.
template<class Raw, class... Held>
class awaited_hooks {
  using awaitable = boost::asio::awaitable<void>;
  using set_type = hook_set<Raw, Held...>;
  template<std::size_t I>
  using hook_at = typename set_type::template hook_at<I>;
  template<std::size_t I, class Choice>
  using request_at = typename set_type::template request_at<I, Choice>;

  template<class Visit, std::size_t I>
  static constexpr hook_call<Visit> call_at() {
    if constexpr (!Visit::template has<I>) {
      return {};
    } else if constexpr (Visit::template awaits<I>) {
      return {.await = [](Visit& visit) { return visit.template is_due<I>() ? visit.template await<I>() : awaitable(); }};
    } else {
      return {.call = [](Visit& visit) { visit.template call<I>(); }};
    }
  }
  template<class Visit>
  static constexpr auto calls_of() {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<hook_call<Visit>, sizeof...(Held)>{call_at<Visit, I>()...};
    }(std::index_sequence_for<Held...>());
  }

  /// The base of all visits. In a run, an awaited hook is called only if it takes part in the run.
  template<bool InRun>
  class visit {
  public:
    explicit visit(set_type& hooks) noexcept : hooks_(hooks) {}
    template<std::size_t I>
    [[nodiscard]] bool is_due() const {
      if constexpr (InRun) {
        return hooks_.wanted_[I];
      } else {
        return hooks_.template is_active<I>();
      }
    }

  protected:
    template<std::size_t I>
    [[nodiscard]] hook_at<I>& hook() const {
      return hooks_.template at<I>();
    }
    set_type& hooks_;
  };

public:
  /// A point outside of runs, called with `arguments`. If `failures` is given, exceptions are added to it, and a hook is called even if an
  /// earlier one threw.
  template<class Point, class... Args>
  class calls_of_point : public visit<false> {
  public:
    explicit calls_of_point(set_type& hooks, Args&... arguments) noexcept : visit<false>(hooks), arguments_(arguments...) {}
    calls_of_point(set_type& hooks, Args&... arguments, error_collector& failures) noexcept : calls_of_point(hooks, arguments...) {
      failures_ = &failures;
    }
    template<std::size_t I>
    static constexpr bool has = set_type::template has<Point, I>;
    template<std::size_t I>
    static constexpr bool awaits = Point::template is_awaited<hook_at<I>, Raw>;
    template<std::size_t I>
    void call() {
      if (!this->template is_due<I>()) { return; }
      const auto call = [this] { std::apply([this](Args&... all) { this->hooks_.template call_at<Point, I>(all...); }, arguments_); };
      failures_ != nullptr ? failures_->attempt(call) : call();
    }
    template<std::size_t I>
    awaitable await() {
      try {
        auto theirs = std::apply([this](Args&... all) { return Point::call(this->template hook<I>(), all...); }, arguments_);
        co_await std::move(theirs);
      } catch (...) {
        if (failures_ == nullptr) { throw; }
        failures_->add(std::current_exception());
      }
    }
    static constexpr auto calls() { return calls_of<calls_of_point>(); }

  private:
    std::tuple<Args&...> arguments_;
    error_collector* failures_ = nullptr;
  };
  using beginning = calls_of_point<begin_point>;
  using creation = calls_of_point<after_create_session_point, session_handle<Raw>, coordinator>;
  using ending = calls_of_point<end_point, session_handle<Raw>>;  ///< With `failures`. @see D-20

  /// `before_run`.
  template<class Choice, bool Traced>
  class before_run_calls : public visit<true> {
  public:
    /// The requests of the hooks that `Choice` selects, for one run.
    using requests = decltype(std::declval<set_type&>().template before_run<Choice>(std::declval<run_context<Raw>&>()));

    before_run_calls(set_type& hooks, run_context<Raw>& context) noexcept : visit<true>(hooks), context_(context) {}
    template<std::size_t I>
    static constexpr bool has = true;
    template<std::size_t I>
    static constexpr bool awaits = set_type::template request_kind<I, Choice>::is_asked && set_type::template is_awaited_in_runs<I>;
    template<std::size_t I>
    void call() {
      std::get<I>(all_).emplace(this->hooks_.template ask<I, Choice, Traced>(context_));
    }
    template<std::size_t I>
    awaitable await() {
      auto& request = std::get<I>(all_).emplace().all;
      if constexpr (!before_run_point::is_awaited<hook_at<I>, Raw>) {
        request.emplace(this->hooks_.template ask_hook<I, Traced>(context_));
        co_return;
      } else if constexpr (std::is_void_v<coro::once_awaited_t<decltype(this->template hook<I>().before_run(context_))>>) {
        co_await this->template hook<I>().before_run(context_);
        request.emplace();
      } else {
        auto wanted = co_await this->template hook<I>().before_run(context_);
        request.emplace(detail::as_request(std::move(wanted)));
      }
    }
    /// Returns the requests. The request is empty for a hook that does not take part in the run. @pre All hooks were visited.
    [[nodiscard]] requests take() {
      return std::apply([](auto&... one) { return requests(taken(one)...); }, all_);
    }
    static constexpr auto calls() { return calls_of<before_run_calls>(); }

  private:
    template<class Request>
    static Request taken(std::optional<Request>& one) {
      if constexpr (std::is_default_constructible_v<Request>) {
        return one ? std::move(*one) : Request();
      } else {
        return std::move(*one);
      }
    }
    template<class... Request>
    static std::tuple<std::optional<Request>...> places_for(const std::tuple<Request...>&);

    run_context<Raw>& context_;
    decltype(places_for(std::declval<requests>())) all_;
  };

  /// `after_run`. `requests`: those that `before_run_calls` took.
  template<class Choice, bool Traced>
  class after_run_calls : public visit<true> {
    using requests = typename before_run_calls<Choice, Traced>::requests;
    using outcome_type = typename Raw::outcome_type;

  public:
    after_run_calls(set_type& hooks, run_context<Raw>& context, const requests& asked, const Raw& raw, const outcome_type& outcome,
                    const run_info& how) noexcept
        : visit<true>(hooks), context_(context), asked_(asked), raw_(raw), outcome_(outcome), how_(how) {}
    template<std::size_t I>
    static constexpr bool has = set_type::template has<after_run_point, I> && Choice::template chooses<hook_at<I>>;
    template<std::size_t I>
    static constexpr bool awaits = set_type::template is_awaited_in_runs<I>;
    template<std::size_t I>
    void call() {
      this->hooks_.template tell<I, Choice, Traced>(context_, std::get<I>(asked_), raw_, outcome_, how_);
    }
    template<std::size_t I>
    awaitable await() {
      const values_of<hook_at<I>, Raw> values(raw_, outcome_, std::get<I>(asked_).pack(), how_);
      using returned = coro::once_awaited_t<decltype(this->template hook<I>().after_run(context_, values))>;
      static_assert(std::is_void_v<returned>, "stepwell: after_run must return void, or an awaitable of it");
      if constexpr (after_run_point::is_awaited<hook_at<I>, Raw>) {
        co_await this->template hook<I>().after_run(context_, values);
      } else {
        this->template hook<I>().after_run(context_, values);
      }
    }
    static constexpr auto calls() { return calls_of<after_run_calls>(); }

  private:
    run_context<Raw>& context_;
    const requests& asked_;
    const Raw& raw_;
    const outcome_type& outcome_;
    const run_info& how_;
  };
};

}  // namespace stepwell::detail
