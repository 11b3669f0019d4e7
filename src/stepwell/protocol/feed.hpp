// SPDX-License-Identifier: Apache-2.0
//
// Feeds: values that replace members of the model or of the batch for one run.
// @see contract RUN-5
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// A key and the value that is fed for it.
template<class Key, class Value>
struct fed {
  constexpr fed()
    requires(std::default_initializable<Key> && std::default_initializable<Value>)
  = default;
  constexpr fed(Key given_key, Value given) : key(std::move(given_key)), value(std::move(given)) {}

  Key key{};
  Value value{};
};

/// Returns a feed: in one run, the object that `key` names has the value `value`. For a model session, the key is a pointer to a member of
/// the model or of the batch: `feed(&model::rate, 0.1f)`. A member of the model gets its previous value back after the run. If the key is a
/// member of the batch, the step gets a copy of the batch with the new value. For raw sessions other than model sessions, the key may be a
/// name: `feed("images:0", images)`. Two names are equal if their texts are equal, even if one is a `std::string` and the other a string
/// literal.
template<class Key, class Value>
[[nodiscard]] constexpr fed<std::decay_t<Key>, std::decay_t<Value>> feed(Key&& key, Value&& value) {
  return {std::forward<Key>(key), std::forward<Value>(value)};
}

/// Several feeds, as a member of `run_args` (the request of a hook).
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

/// Returns a tuple of pointers to the feeds: the pointer `one` itself, or a pointer to each feed in `pack`. If the argument is null, all
/// pointers of the tuple are null.
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
