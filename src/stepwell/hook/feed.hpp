// SPDX-License-Identifier: Apache-2.0
//
// Values that take the place of others for one run (contract RUN-5).
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// A key and the value to feed it with.
template<class Key, class Value>
struct fed {
  constexpr fed()
    requires(std::default_initializable<Key> && std::default_initializable<Value>)
  = default;
  constexpr fed(Key given_key, Value given) : key(std::move(given_key)), value(std::move(given)) {}

  Key key{};
  Value value{};
};

/// Feeds `key` with `value` in one run. On a model session the key is a member of the model or of the batch:
/// `feed(&model::rate, 0.1f)`; a model gets its own value back after the run, a batch is copied first.
template<class Key, class Value>
[[nodiscard]] constexpr fed<std::decay_t<Key>, std::decay_t<Value>> feed(Key&& key, Value&& value) {
  return {std::forward<Key>(key), std::forward<Value>(value)};
}

/// Several feeds, for `run_args`.
template<class... Fed>
struct feed_pack {
  constexpr feed_pack() = default;
  constexpr explicit feed_pack(std::tuple<Fed...> given) : all(std::move(given)) {}

  [[no_unique_address]] std::tuple<Fed...> all;
};
template<class... Key, class... Value>
[[nodiscard]] constexpr feed_pack<fed<Key, Value>...> feeds(fed<Key, Value>... given) {
  return feed_pack<fed<Key, Value>...>(std::tuple<fed<Key, Value>...>(std::move(given)...));
}

namespace detail {

template<class T>
struct is_fed : std::false_type {};
template<class Key, class Value>
struct is_fed<fed<Key, Value>> : std::true_type {};

/// Pointers to the single feeds; null where `is_due` is false.
template<class Key, class Value>
constexpr std::tuple<const fed<Key, Value>*> feeds_in(const fed<Key, Value>* one) {
  return {one};
}
template<class... Fed>
constexpr std::tuple<const Fed*...> feeds_in(const feed_pack<Fed...>* pack) {
  if (pack == nullptr) { return {}; }
  return std::apply([](const auto&... one) { return std::tuple<const Fed*...>(&one...); }, pack->all);
}

}  // namespace detail
}  // namespace stepwell
