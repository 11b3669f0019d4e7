// SPDX-License-Identifier: Apache-2.0
//
// `run_args`, which `before_run` of a hook may return instead of the result of `fetch(...)`. This header also has the internal types to
// which the session converts the results of `before_run`.
// @see contract HOOK-3
#pragma once

#include "stepwell/protocol/feed.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/run_options.hpp"

#include <cstdlib>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {
/// The type of `run_args::options` if the options are omitted.
struct no_run_options {};

/// Returns the default value of a part of a request. A type without a default value is always deduced from a value that the hook gives, so
/// the branch with `abort` is never executed. The branch exists because clang compiles the call if the request is in a `std::optional`.
template<class Part>
constexpr Part omitted() {
  if constexpr (std::is_default_constructible_v<Part>) {
    return {};
  } else {
    std::abort();
  }
}
}  // namespace detail

/// The request of a hook for one run. Its parts are fetches, feeds and options: `run_args{.fetch = fetch(&result::loss), .feed =
/// feed(&model::rate, 0.1f), .options = run_options{...}}`. At least one part must be given. For several feeds, write `.feed =
/// feeds(feed(...), feed(...))`.
///
/// Do not write the bare name of a data member as a part (`.options = options_`) in a function template such as `before_run(auto&)`: clang
/// (tested: 19 and 21) then deduces the wrong type without a message. Write a copy instead: `.options = run_options(options_)`.
template<class Fetch = fetch_pack<>, class Feed = feed_pack<>, class Options = detail::no_run_options>
struct run_args {
  Fetch fetch = detail::omitted<Fetch>();
  Feed feed = detail::omitted<Feed>();
  Options options = detail::omitted<Options>();
};

namespace detail {

/// The request of a hook that requests nothing.
struct no_request {
  using pack_type = fetch_pack<>;
  static constexpr bool has_options = false;
  static constexpr fetch_pack<> all{};

  static constexpr const fetch_pack<>* pack() noexcept { return &all; }
  static constexpr std::tuple<> feeds() noexcept { return {}; }
};

/// The request of a hook that requests fetches in every run.
template<class Pack>
struct fetch_request {
  using pack_type = Pack;
  static constexpr bool has_options = false;
  Pack all;

  constexpr const Pack* pack() const noexcept { return &all; }
  static constexpr std::tuple<> feeds() noexcept { return {}; }
};

/// The request of a hook that requests fetches in some runs. In the other runs, it requests nothing.
template<class Pack>
struct maybe_fetch_request {
  using pack_type = Pack;
  static constexpr bool has_options = false;
  std::optional<Pack> all;

  constexpr const Pack* pack() const noexcept { return all ? &*all : nullptr; }
  static constexpr std::tuple<> feeds() noexcept { return {}; }
};

/// The request of a hook that returns `run_args`, in every run or in some runs.
template<class Args>
struct args_request;
template<class Pack, class Feed, class Options>
struct args_request<run_args<Pack, Feed, Options>> {
  using pack_type = Pack;
  static constexpr bool has_options = !std::is_same_v<Options, no_run_options>;
  std::optional<run_args<Pack, Feed, Options>> all;

  constexpr const Pack* pack() const noexcept { return all ? &all->fetch : nullptr; }
  constexpr auto feeds() const { return detail::feeds_in(all ? &all->feed : nullptr); }
  constexpr const Options* options() const noexcept { return all ? &all->options : nullptr; }
};

template<fetches Pack>
constexpr auto as_request(Pack&& pack) {
  return fetch_request<Pack>{std::forward<Pack>(pack)};
}
template<fetches Pack>
constexpr auto as_request(std::optional<Pack>&& pack) {
  return maybe_fetch_request<Pack>{std::move(pack)};
}
template<class... Parts>
constexpr auto as_request(run_args<Parts...>&& args) {
  static_assert(!std::is_same_v<run_args<Parts...>, run_args<>>,
                "stepwell: this run_args requests nothing. Clang discards parts that are names of data members: write values instead, "
                "such as .options = run_options(options_)");
  return args_request<run_args<Parts...>>{std::move(args)};
}
template<class... Parts>
constexpr auto as_request(std::optional<run_args<Parts...>>&& args) {
  return args_request<run_args<Parts...>>{std::move(args)};
}

/// A type that `before_run` may return.
template<class T>
concept run_request = std::is_void_v<T> || requires(T&& value) { as_request(std::move(value)); };

}  // namespace detail
}  // namespace stepwell
