// SPDX-License-Identifier: Apache-2.0
//
// The complete request of one run: the request of the run's caller and the requests of all hooks, combined.
// @see contract RUN-4 to RUN-9
#pragma once

#include "stepwell/base/detail/type_key.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/protocol/run_args.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Selects every hook of a session for a run.
struct all_hooks {
  template<class Hook>
  static constexpr bool chooses = true;
};

/// Selects hooks by type: `session.run_with<only<progress_hook<>, checkpoint_saver_hook>>(batch)`. `only<>` selects no hook.
template<class... Hooks>
struct only {
  template<class Hook>
  static constexpr bool chooses = (std::is_same_v<Hook, Hooks> || ...);
};

namespace detail {

/// Throws the error for a key that is fed twice. `by_user` is true if one of the feeds is that of the run's caller and the other that of a
/// hook.
/// @errors `failed_precondition_error`, always.
/// @see contract RUN-5
[[noreturn]] void throw_fed_twice(bool by_user, const std::string& key);

template<class Key>
std::string text_of_key(const Key& key) {
  if constexpr (std::convertible_to<const Key&, std::string_view>) {
    return std::string(std::string_view(key));
  } else if constexpr (requires {
                         { key.name() } -> std::convertible_to<std::string>;
                       }) {
    return key.name();
  } else {
    return std::string(type_name<Key>());
  }
}

/// Returns true if two keys are equal. A key that is a name equals an object with a `name()` if the object has this name.
template<class A, class B>
bool same_key(const A& a, const B& b) {
  constexpr bool is_name_a = std::convertible_to<const A&, std::string_view>;
  constexpr bool is_name_b = std::convertible_to<const B&, std::string_view>;
  if constexpr (std::is_same_v<A, const char*> && std::is_same_v<B, const char*>) {
    return *a == *b && std::strcmp(a, b) == 0;  // most names differ in the first character
  } else if constexpr (is_name_a && is_name_b) {
    return std::string_view(a) == std::string_view(b);
  } else if constexpr (std::is_same_v<A, B>) {
    return a == b;
  } else if constexpr ((is_name_a && requires { b.name(); }) || (is_name_b && requires { a.name(); })) {
    return detail::text_of_key(a) == detail::text_of_key(b);
  } else {
    return false;
  }
}

template<class A, class B>
[[gnu::always_inline]] inline void check_apart(const A* a, const B* b, bool by_user) {
  if (a == nullptr || b == nullptr) { return; }
  if (detail::same_key(a->key, b->key)) [[unlikely]] { throw_fed_twice(by_user, detail::text_of_key(a->key)); }
}
template<class One, class Others>
void check_apart_from(const One* one, const Others& others, bool by_user) {
  std::apply([&](const auto*... other) { (detail::check_apart(one, other, by_user), ...); }, others);
}
/// Checks that no two feeds of `all` have the same key.
/// @errors `failed_precondition_error` if two feeds have the same key.
template<std::size_t I = 0, class... Fed>
void check_apart_among(const std::tuple<const Fed*...>& all) {
  if constexpr (I + 1 < sizeof...(Fed)) {
    [&]<std::size_t... J>(std::index_sequence<J...>) {
      (detail::check_apart(std::get<I>(all), std::get<I + 1 + J>(all), false), ...);
    }(std::make_index_sequence<sizeof...(Fed) - I - 1>{});
    detail::check_apart_among<I + 1>(all);
  }
}

template<class... Given>
struct fetched_by {
  using type = void;
};
template<class... Projections, class... Rest>
struct fetched_by<fetch_pack<Projections...>, Rest...> {
  using type = fetch_pack<Projections...>;
};
template<class Projection, class... Rest>
struct fetched_by<fetch_list<Projection>, Rest...> {
  using type = fetch_list<Projection>;
};
template<class First, class... Rest>
struct fetched_by<First, Rest...> : fetched_by<Rest...> {};

/// The request of the caller of `run`: the selection of hooks, and pointers to the fetches, feeds, options and metadata that the caller
/// passed. The arguments of the step are not included.
/// @lifetime The objects of the caller must outlive this object.
template<class Choice, class... Given>
struct caller_request {
  using hook_choice = Choice;
  std::tuple<const Given*...> given;

  static constexpr bool has_options = (std::is_same_v<Given, run_options> || ...);
  static constexpr bool has_metadata = (std::is_same_v<Given, run_metadata> || ...);
  /// The type of the fetches, or void.
  using pack_type = typename fetched_by<Given...>::type;

  constexpr const auto* pack() const noexcept { return std::get<const pack_type*>(given); }
  constexpr auto feeds() const {
    return std::apply([](const auto*... one) { return std::tuple_cat(feeds_of(one)...); }, given);
  }
  constexpr const run_options* options() const noexcept { return std::get<const run_options*>(given); }
  /// Returns the object to which the metadata of this run is written.
  run_metadata& metadata() const noexcept
    requires has_metadata
  {
    return const_cast<run_metadata&>(*std::get<const run_metadata*>(given));  // the caller passed a non-const object
  }

private:
  template<class One>
  static constexpr auto feeds_of(const One* one) {
    if constexpr (is_fed<One>::value) {
      return detail::feeds_in(one);
    } else {
      return std::tuple<>{};
    }
  }
};

inline constinit const run_options default_options{};
inline constinit const run_metadata discarded_metadata{};  // for runs without metadata: always empty, shared by all sessions

template<class T>
inline constexpr bool is_for_caller = fetches<T> || is_fed<T>::value || std::is_same_v<T, run_options> || std::is_same_v<T, run_metadata>;

template<bool ForCaller, class... Args>
inline constexpr std::size_t number_of = (std::size_t{is_for_caller<std::remove_cvref_t<Args>> == ForCaller} + ... + 0);

template<bool ForCaller, class... Args, std::size_t... I>
constexpr auto places_of(std::index_sequence<I...>) {
  constexpr auto places = [] {
    std::array<std::size_t, number_of<ForCaller, Args...>> found{};
    [[maybe_unused]] std::size_t next = 0;
    ((is_for_caller<std::remove_cvref_t<Args>> == ForCaller ? void(found[next++] = I) : void()), ...);
    return found;
  }();
  return [&]<std::size_t... J>(std::index_sequence<J...>) {
    return std::index_sequence<places[J]...>{};
  }(std::make_index_sequence<number_of<ForCaller, Args...>>{});
}
/// The indices of the arguments of `run` that belong to the caller's request. `places_for_step` has the indices of the other arguments,
/// which are those of the step.
template<class... Args>
using places_for_caller = decltype(places_of<true, Args...>(std::index_sequence_for<Args...>{}));
template<class... Args>
using places_for_step = decltype(places_of<false, Args...>(std::index_sequence_for<Args...>{}));

}  // namespace detail

/// The request that `run` of a raw session receives. No key is fed twice.
/// @lifetime Valid during the run.
template<class Caller, class... Requests>
class run_request {
public:
  using hook_requests = std::tuple<Requests...>;
  using hook_choice = typename Caller::hook_choice;
  static constexpr bool has_options = Caller::has_options || (Requests::has_options || ...);
  static constexpr bool has_metadata = Caller::has_metadata || has_options;
  /// True if the caller of the run fetches values.
  static constexpr bool has_caller_fetches = !std::is_void_v<typename Caller::pack_type>;
  static constexpr bool has_feeds = (std::tuple_size_v<decltype(std::declval<const Caller&>().feeds())> + ... +
                                     std::tuple_size_v<decltype(std::declval<const Requests&>().feeds())>) > 0;

  /// @errors `failed_precondition_error` if one key is fed twice.
  constexpr run_request(const Caller& caller, hook_requests&& hooks) : caller_(caller), hooks_(std::move(hooks)) {
    if constexpr (has_feeds) { check_feeds(); }
    if constexpr (has_options) { merge_options(); }
  }

  [[nodiscard]] constexpr const hook_requests& hooks() const noexcept { return hooks_; }

  /// Calls `action(fetch)` for each fetch of this run: first the fetches of the hooks, in the order of the hooks, then those of the caller.
  /// If several requests contain the same fetch, `action` is called once for each of these requests. The type of the fetch is that in the
  /// request, for example `const char*` in one request and `std::string` in another. Display names (see `tag`) are removed.
  /// @lifetime The reference is valid during the run.
  template<class Action>
  constexpr void for_each_fetch(Action&& action) const {
    const auto visit = [&action](const auto* fetches) {
      if (fetches != nullptr) { fetches->for_each(action); }
    };
    std::apply([&](const auto&... request) { (visit(request.pack()), ...); }, hooks_);
    if constexpr (!std::is_void_v<typename Caller::pack_type>) { visit(caller_.pack()); }
  }
  /// Calls `action(key, value)` for each feed of this run.
  /// @lifetime The references are valid during the run.
  template<class Action>
  constexpr void for_each_feed(Action&& action) const {
    const auto visit = [&action](const auto* one) {
      if (one != nullptr) { action(one->key, one->value); }
    };
    std::apply([&](const auto*... one) { (visit(one), ...); }, feeds());
  }
  /// Returns a tuple of pointers of type `const fed<Key, Value>*`, one for each feed. A pointer is null if the hook of this feed feeds
  /// nothing in this run.
  [[nodiscard]] constexpr auto feeds() const { return std::tuple_cat(feeds_of_hooks(), caller_.feeds()); }
  /// Returns the options of the caller and the hooks, merged. If no request has options, all options are unset.
  /// @see contract RUN-7
  [[nodiscard]] constexpr const run_options& options() const noexcept {
    if constexpr (has_options) {
      return options_;
    } else {
      return detail::default_options;
    }
  }
  /// Returns the metadata of this run: one object for the caller and all hooks. If `has_metadata` is true, the raw session may write to the
  /// object; if the caller passed a `run_metadata`, the object is that of the caller. If `has_metadata` is false, the object is an empty
  /// constant that all sessions share.
  /// @see contract RUN-8
  [[nodiscard]] constexpr std::conditional_t<has_metadata, run_metadata, const run_metadata>& metadata() const noexcept {
    if constexpr (Caller::has_metadata) {
      return caller_.metadata();
    } else if constexpr (has_options) {
      return own_;
    } else {
      return detail::discarded_metadata;
    }
  }

private:
  struct nothing {};

  constexpr auto feeds_of_hooks() const {
    return std::apply([](const auto&... request) { return std::tuple_cat(request.feeds()...); }, hooks_);
  }
  void check_feeds() const {
    const auto of_hooks = feeds_of_hooks();
    detail::check_apart_among(of_hooks);
    const auto of_caller = caller_.feeds();
    std::apply([&](const auto*... one) { (detail::check_apart_from(one, of_caller, true), ...); }, of_hooks);
    detail::check_apart_among(of_caller);
  }
  void merge_options() {
    if constexpr (Caller::has_options) { options_ = *caller_.options(); }  // a copy: the caller's options stay unchanged; contract D-10
    std::apply([this](const auto&... request) { (this->merge_of(request), ...); }, hooks_);
  }
  template<class Request>
  void merge_of(const Request& request) {
    if constexpr (Request::has_options) {
      if (const auto* more = request.options()) { merge(options_, *more); }
    }
  }

  const Caller& caller_;
  hook_requests hooks_;
  [[no_unique_address]] std::conditional_t<has_options, run_options, nothing> options_;
  [[no_unique_address]] mutable std::conditional_t<has_options && !Caller::has_metadata, run_metadata, nothing> own_;
};

}  // namespace stepwell
