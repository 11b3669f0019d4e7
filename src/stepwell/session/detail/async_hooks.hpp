// SPDX-License-Identifier: Apache-2.0
//
// Calls of one point of all hooks in a set, in order. Awaitable calls are awaited one at a time; the calls between two of them are made
// together.
#pragma once

#include "stepwell/hook/detail/error_collector.hpp"
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

/// The visits of the hooks of a `hook_set<Raw, Held...>`: one class for each hook point.
template<class Raw, class... Held>
class awaited_hooks {
  using awaitable = boost::asio::awaitable<void>;
  using set_type = hook_set<Raw, Held...>;
  using indices = std::index_sequence_for<Held...>;
  template<std::size_t I>
  using hook_at = typename set_type::template hook_at<I>;
  template<std::size_t I>
  using on = typename set_type::template on<I>;
  template<std::size_t I>
  using awaits = typename set_type::template awaited_at<I>;
  template<std::size_t I, class Choice>
  using request_at = typename set_type::template request_at<I, Choice>;

  enum class call_kind { absent, called, awaited };
  static constexpr call_kind kind_of_call(bool is_there, bool is_awaited) {
    return !is_there ? call_kind::absent : is_awaited ? call_kind::awaited : call_kind::called;
  }

  template<class Visit, std::size_t I>
  static constexpr hook_call<Visit> call_at() {
    hook_call<Visit> made;
    if constexpr (Visit::template how<I> == call_kind::called) {
      made.call = [](Visit& visit) { visit.template call<I>(); };
    }
    if constexpr (Visit::template how<I> == call_kind::awaited) {
      made.await = [](Visit& visit) { return visit.template is_due<I>() ? visit.template await<I>() : awaitable(); };
    }
    return made;
  }
  template<class Visit, std::size_t... I>
  static constexpr auto calls_of(std::index_sequence<I...>) {
    return std::array<hook_call<Visit>, sizeof...(Held)>{call_at<Visit, I>()...};
  }

  /// The base of all visits.
  class to_hooks {
  public:
    explicit to_hooks(set_type& hooks) noexcept : hooks_(&hooks) {}
    template<std::size_t I>
    [[nodiscard]] bool is_due() const {
      return hooks_->template is_active<I>();
    }

  protected:
    template<std::size_t I>
    [[nodiscard]] hook_at<I>& hook() const {
      return hooks_->template at<I>();
    }
    set_type* hooks_;
  };
  /// The base of visits in a run. A hook with awaitable points is called only if it takes part in the run.
  class in_run : public to_hooks {
  public:
    using to_hooks::to_hooks;
    template<std::size_t I>
    [[nodiscard]] bool is_due() const {
      return this->hooks_->wanted_[I];
    }
  };

public:
  /// `begin`.
  class beginning : public to_hooks {
  public:
    using to_hooks::to_hooks;
    template<std::size_t I>
    static constexpr call_kind how = kind_of_call(on<I>::has_begin, awaits<I>::begin);
    template<std::size_t I>
    void call() {
      if (this->template is_due<I>()) { this->template hook<I>().begin(); }
    }
    template<std::size_t I>
    awaitable await() {
      co_await this->template hook<I>().begin();
    }
    static constexpr auto calls() { return calls_of<beginning>(indices()); }
  };

  /// `after_create_session`.
  class creation : public to_hooks {
  public:
    creation(set_type& hooks, session_handle<Raw>& session, coordinator& threads) noexcept
        : to_hooks(hooks), session_(&session), threads_(&threads) {}
    template<std::size_t I>
    static constexpr call_kind how = kind_of_call(on<I>::has_after_create_session, awaits<I>::after_create_session);
    template<std::size_t I>
    void call() {
      if (this->template is_due<I>()) { this->template hook<I>().after_create_session(*session_, *threads_); }
    }
    template<std::size_t I>
    awaitable await() {
      co_await this->template hook<I>().after_create_session(*session_, *threads_);
    }
    static constexpr auto calls() { return calls_of<creation>(indices()); }

  private:
    session_handle<Raw>* session_;
    coordinator* threads_;
  };

  /// `end`. A hook is called even if an earlier one threw. @see D-20
  class ending : public to_hooks {
  public:
    ending(set_type& hooks, session_handle<Raw>& session, error_collector& failures) noexcept
        : to_hooks(hooks), session_(&session), failures_(&failures) {}
    template<std::size_t I>
    static constexpr call_kind how = kind_of_call(on<I>::has_end, awaits<I>::end);
    template<std::size_t I>
    void call() {
      if (!this->template is_due<I>()) { return; }
      failures_->attempt([&] { this->hooks_->template end_hook<I>(*session_); });
    }
    template<std::size_t I>
    awaitable await() {
      try {
        co_await this->template hook<I>().end(*session_);
      } catch (...) { failures_->add(std::current_exception()); }
    }
    static constexpr auto calls() { return calls_of<ending>(indices()); }

  private:
    session_handle<Raw>* session_;
    error_collector* failures_;
  };

private:
  template<class Choice, class Indices>
  struct requests_of;
  template<class Choice, std::size_t... I>
  struct requests_of<Choice, std::index_sequence<I...>> {
    using type = std::tuple<request_at<I, Choice>...>;
    using collected = std::tuple<std::optional<request_at<I, Choice>>...>;
  };

public:
  /// The requests of the hooks that `Choice` selects, for one run.
  template<class Choice>
  using requests = typename requests_of<Choice, indices>::type;

  /// `before_run`.
  template<class Choice, bool Traced>
  class before_run_calls : public in_run {
  public:
    before_run_calls(set_type& hooks, run_context<Raw>& context) noexcept : in_run(hooks), context_(&context) {}
    template<std::size_t I>
    static constexpr bool is_asked = set_type::template request_kind<I, Choice>::is_asked;
    template<std::size_t I>
    static constexpr call_kind how = kind_of_call(true, (is_asked<I>) && awaits<I>::run);
    template<std::size_t I>
    void call() {
      std::get<I>(all_).emplace(this->hooks_->template ask<I, Choice, Traced>(*context_));
    }
    template<std::size_t I>
    awaitable await() {
      if constexpr (!awaits<I>::before_run) {
        std::get<I>(all_).emplace(request_at<I, Choice>{this->hooks_->template ask_hook<I, Traced>(*context_)});
        co_return;
      } else if constexpr (std::is_void_v<coro::once_awaited_t<decltype(this->template hook<I>().before_run(*context_))>>) {
        co_await this->template hook<I>().before_run(*context_);
        std::get<I>(all_).emplace(request_at<I, Choice>{no_request{}});
      } else {
        auto wanted = co_await this->template hook<I>().before_run(*context_);
        std::get<I>(all_).emplace(request_at<I, Choice>{detail::as_request(std::move(wanted))});
      }
    }
    /// Returns the requests. The request is empty for a hook that does not take part in the run. @pre All hooks were visited.
    [[nodiscard]] requests<Choice> take() {
      return std::apply([](auto&... one) { return requests<Choice>(taken(one)...); }, all_);
    }
    static constexpr auto calls() { return calls_of<before_run_calls>(indices()); }

  private:
    template<class Request>
    static Request taken(std::optional<Request>& one) {
      if constexpr (std::is_default_constructible_v<Request>) {
        return one ? std::move(*one) : Request();
      } else {
        return std::move(*one);
      }
    }

    run_context<Raw>* context_;
    typename requests_of<Choice, indices>::collected all_;
  };

  /// `after_run`.
  template<class Choice, bool Traced>
  class after_run_calls : public in_run {
    using outcome_type = typename Raw::outcome_type;

  public:
    after_run_calls(set_type& hooks, run_context<Raw>& context, const requests<Choice>& asked, const Raw& raw, const outcome_type& outcome,
                    const run_info& how_done) noexcept
        : in_run(hooks), context_(&context), asked_(&asked), raw_(&raw), outcome_(&outcome), how_done_(&how_done) {}
    template<std::size_t I>
    static constexpr bool is_told = on<I>::has_after_run && Choice::template chooses<hook_at<I>>;
    template<std::size_t I>
    static constexpr call_kind how = kind_of_call(is_told<I>, awaits<I>::run);
    template<std::size_t I>
    void call() {
      this->hooks_->template tell<I, Choice, Traced>(*context_, std::get<I>(*asked_), *raw_, *outcome_, *how_done_);
    }
    template<std::size_t I>
    awaitable await() {
      const values_of<hook_at<I>, Raw> values(*raw_, *outcome_, std::get<I>(*asked_).pack(), *how_done_);
      using returned = coro::once_awaited_t<decltype(this->template hook<I>().after_run(*context_, values))>;
      static_assert(std::is_void_v<returned>, "stepwell: after_run must return void, or an awaitable of it");
      if constexpr (awaits<I>::after_run) {
        co_await this->template hook<I>().after_run(*context_, values);
      } else {
        this->template hook<I>().after_run(*context_, values);
      }
    }
    static constexpr auto calls() { return calls_of<after_run_calls>(indices()); }

  private:
    run_context<Raw>* context_;
    const requests<Choice>* asked_;
    const Raw* raw_;
    const outcome_type* outcome_;
    const run_info* how_done_;
  };
};

}  // namespace stepwell::detail
