// SPDX-License-Identifier: Apache-2.0
//
// Feeds of a model session: members of the model are replaced during a run, members of a batch are replaced in a copy.
#pragma once

#include "stepwell/base/detail/type_name.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/hook/feed.hpp"

#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

template<class Key>
struct member_of;
template<class T, class C>
struct member_of<T C::*> {
  using value_type = T;
  using class_type = C;
};

/// True if `Key` points to a member of `Holder` that can be assigned to.
template<class Key, class Holder>
concept key_into = requires { typename member_of<Key>::class_type; } && std::derived_from<Holder, typename member_of<Key>::class_type> &&
                   !std::is_const_v<typename member_of<Key>::value_type>;

/// Replaces a member of a model, and restores its value at destruction.
template<class Model, class T, class C>
class put_back {
public:
  template<class Value>
  put_back(Model& model, T C::* member, const Value& value) : model_(&model), member_(member), old_(static_cast<T>(value)) {
    std::swap(model.*member, old_);
  }
  put_back(put_back&& other) noexcept : model_(std::exchange(other.model_, nullptr)), member_(other.member_), old_(std::move(other.old_)) {}
  put_back& operator=(put_back&&) = delete;
  ~put_back() {
    if (model_ != nullptr) { std::swap(model_->*member_, old_); }
  }

private:
  Model* model_;
  T C::* member_;
  T old_;
};

/// Checks the key of a feed.
/// @errors `invalid_argument_error` if the key is a null pointer.
template<class Key, class Value>
void check_key(const fed<Key, Value>* one) {
  if (one != nullptr && one->key == nullptr) {
    throw invalid_argument_error("a feed names no member: its key is a null pointer to a member of type " +
                                 std::string(type_name<typename member_of<Key>::value_type>()) + "; give the address of the member");
  }
}

template<class Model, class Key, class Value>
auto fed_member(Model& model, const fed<Key, Value>* one) {
  if constexpr (key_into<Key, Model>) {
    check_key(one);
    using holder = put_back<Model, typename member_of<Key>::value_type, typename member_of<Key>::class_type>;
    return one != nullptr ? std::optional<holder>(std::in_place, model, one->key, one->value) : std::optional<holder>();
  } else {
    return std::nullopt;  // a feed to a batch
  }
}

/// The request of a run; `std::tuple<>` is an empty request.
template<class Order>
concept order_like = requires {
  { Order::has_feeds } -> std::convertible_to<bool>;
} || std::same_as<Order, std::tuple<>>;

template<class Order>
constexpr bool has_feeds() {
  if constexpr (requires { Order::has_feeds; }) {
    return Order::has_feeds;
  } else {
    return false;
  }
}

/// Returns true if any feed of `Order` refers to a member of `Batch`.
template<class Order, class Batch>
constexpr bool feeds_batch() {
  if constexpr (!has_feeds<Order>()) {
    return false;
  } else {
    using feeds = decltype(std::declval<const Order&>().feeds());
    return []<class... Key, class... Value>(std::type_identity<std::tuple<const fed<Key, Value>*...>>) {
      return (key_into<Key, Batch> || ...);
    }(std::type_identity<feeds>{});
  }
}

template<class Key, class Model, class... Batch>
inline constexpr bool key_fits = key_into<Key, Model> || (key_into<Key, Batch> || ...);

/// Returns true if every feed of `Order` refers to a member of the model or of one of `Batch`.
template<class Order, class Model, class... Batch>
constexpr bool all_feeds_fit() {
  if constexpr (!has_feeds<Order>()) {
    return true;
  } else {
    using feeds = decltype(std::declval<const Order&>().feeds());
    return []<class... Key, class... Value>(std::type_identity<std::tuple<const fed<Key, Value>*...>>) {
      return (key_fits<Key, Model, Batch...> && ...);
    }(std::type_identity<feeds>{});
  }
}

template<class Batch, class Key, class Value>
void feed_one(Batch& batch, const fed<Key, Value>* one) {
  if constexpr (key_into<Key, Batch>) {
    check_key(one);
    if (one != nullptr) { batch.*(one->key) = static_cast<typename member_of<Key>::value_type>(one->value); }
  }
}

/// Returns the argument itself, or a copy with the feeds applied if there are feeds to it.
template<class Order, class Arg>
decltype(auto) with_feeds(const Order& order, Arg&& arg) {
  using batch_type = std::remove_cvref_t<Arg>;
  if constexpr (feeds_batch<Order, batch_type>()) {
    batch_type copy(std::forward<Arg>(arg));
    std::apply([&](const auto*... one) { (feed_one(copy, one), ...); }, order.feeds());
    return copy;
  } else {
    return std::forward<Arg>(arg);
  }
}

}  // namespace stepwell::detail
