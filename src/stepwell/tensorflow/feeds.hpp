// SPDX-License-Identifier: Apache-2.0
//
// Fetches, targets and feeds of runs of a graph. Each of them is a name, a handle (an object with a `name()`), or a typed fetch.
#pragma once

#include "stepwell/base/tensor.hpp"
#include "stepwell/protocol/feed.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/tensorflow/graph.hpp"
#include "stepwell/tensorflow/tensor.hpp"

#include <concepts>
#include <cstddef>
#include <cstring>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

/// A fetch whose value is a `T`: a number, a `std::string`, a `std::vector` of numbers or strings, or a `tensor`.
template<class T>
struct typed_fetch {
  explicit typed_fetch(std::string fetched) : name(std::move(fetched)) {}
  std::string name;
};

/// The names of operations that a run executes. They give no values.
struct target_list {
  target_list() = default;
  explicit target_list(std::vector<std::string> all) : names(std::move(all)) {}
  std::vector<std::string> names;
};

// Values that are fed: if the dtype of a value differs from that of the graph's tensor, numbers are converted, as by Session.run of
// TensorFlow. Floating-point numbers are rounded. A value in which an integer would change, or a number would lose its fraction or become
// infinite, and a value of another kind, such as a string, are an `invalid_argument_error` of the run. For a float16 or bfloat16 of the
// graph, numbers are converted as by numpy: each is rounded to the nearest one, integers, too, and a number beyond the range becomes
// infinite.

/// A feed with a name and a tensor. Use a list of such feeds if the number of feeds is known at run time only.
using named_feed = fed<std::string, tensor>;

namespace detail {

struct call_plan;

/// The element type that a typed fetch expects. `dtype::invalid` means any type.
template<class T>
inline constexpr dtype expected_dtype = dtype_of<T>;
template<class Element>
inline constexpr dtype expected_dtype<std::vector<Element>> = dtype_of<Element>;
template<>
inline constexpr dtype expected_dtype<tensor> = dtype::invalid;

template<class T>
inline constexpr bool is_typed_fetch = false;
template<class T>
inline constexpr bool is_typed_fetch<typed_fetch<T>> = true;

/// A type that names a tensor or an operation.
template<class T>
concept names_tensor = std::convertible_to<const T&, std::string_view> || is_typed_fetch<T> || requires(const T& value) {
  { value.name() } -> std::convertible_to<std::string>;
};

/// Calls `action` with the name that `key` refers to.
template<names_tensor Key, class Action>
decltype(auto) with_name(const Key& key, Action&& action) {
  if constexpr (std::convertible_to<const Key&, std::string_view>) {
    return action(std::string_view(key));
  } else if constexpr (is_typed_fetch<Key>) {
    return action(std::string_view(key.name));
  } else {
    const std::string name = key.name();
    return action(std::string_view(name));
  }
}

template<class Key>
constexpr dtype dtype_wanted_by(const Key& /*key*/) {
  return dtype::invalid;
}
template<class T>
constexpr dtype dtype_wanted_by(const typed_fetch<T>& /*key*/) {
  return expected_dtype<T>;
}

template<class T>
concept list_of_feeds = std::ranges::input_range<const T> && stepwell::detail::is_fed<std::ranges::range_value_t<T>>::value;

/// A fetch of a run as a text. `any_hook` converts every fetch to this type.
struct graph_fetch_key {
  std::string text;

  template<class Fetch>
    requires(names_tensor<Fetch> && !std::same_as<Fetch, graph_fetch_key>)
  explicit graph_fetch_key(const Fetch& fetch) : text(detail::with_name(fetch, [](std::string_view name) { return std::string(name); })) {}
  [[nodiscard]] const std::string& name() const noexcept { return text; }
};

/// A value that is fed: a tensor of the request, or a tensor of its own.
class fed_value {
public:
  explicit fed_value(const tensor* of_request) noexcept : of_request_(of_request) {}
  explicit fed_value(tensor own) noexcept : own_(std::move(own)) {}
  [[nodiscard]] const tensor& get() const noexcept { return of_request_ != nullptr ? *of_request_ : own_; }

private:
  const tensor* of_request_ = nullptr;  // null if the value is `own_`
  tensor own_;
};

/// The request of one run of a graph, as names and tensors. The object is reused for later runs. A request with the same names as the
/// previous one allocates no memory.
/// @lifetime The values of a request must outlive its run, except those in a list of feeds.
class graph_call {
public:
  /// Begins the next request.
  void clear() noexcept {
    position_ = 0;
    is_same_ = true;
    fed_.clear();
    has_targets_ = false;
  }
  /// Releases the fed tensors.
  void release_feeds() noexcept { fed_.clear(); }

  template<names_tensor Fetch>
  void add_fetch(const Fetch& fetch) {
    add_key(static_cast<char>(fetch_mark + static_cast<int>(dtype_wanted_by(fetch))), fetch);
  }
  /// Adds a feed. The graph shares the elements if an earlier run may already have given them to the graph, or if they belong to at most
  /// `owners` tensors. Otherwise the elements are copied. The request of a run holds a tensor for each feed. If the caller moved its tensor
  /// into the request, the elements have one owner. If the caller still has its tensor, they have two.
  template<names_tensor Key, class Value>
  void add_feed(const Key& key, const Value& value, long owners = 1) {
    static_assert(tensor_source<Value>,
                  "stepwell: a value that is fed is a number, a string, a range of them, a tensor, or an expression with a shape");
    add_key(feed_mark, key);
    if constexpr (!std::same_as<Value, tensor>) {
      fed_.emplace_back(tensor(value).for_graph(1));
    } else if (value.give_to_graph(owners)) {
      fed_.emplace_back(&value);
    } else {
      fed_.emplace_back(value.for_graph(owners));
    }
  }
  template<names_tensor Operation>
  void add_target(const Operation& operation) {
    add_key(target_mark, operation);
    has_targets_ = true;
  }
  /// Adds the train operation of the session.
  void add_train_op() { add(train_op_mark, std::string_view()); }

  // Adds an argument of a step: targets, one feed, or several feeds, such as a batch of a source.
  void take(const target_list& all) {
    for (const auto& name : all.names) { add_target(name); }
  }
  template<class Key, class Value>
  void take(const fed<Key, Value>& one) {
    add_feed(one.key, one.value, 0);  // the source, or the caller, may change the value later
  }
  template<class... Fed>
  void take(const feed_pack<Fed...>& all) {
    std::apply([this](const auto&... one) { (this->take(one), ...); }, all.all);
  }
  template<list_of_feeds Feeds>
  void take(const Feeds& all) {
    for (const auto& one : all) { take_element(one); }
  }

  /// Returns the plan that was kept for a request with the same signature, if that was the previous request. Otherwise returns null.
  [[nodiscard]] call_plan* kept_plan() const noexcept { return is_same_ && position_ == signature_.size() ? plan_ : nullptr; }
  /// Keeps the plan of this request. @pre `signature` was called.
  void keep_plan(call_plan& plan) noexcept { plan_ = &plan; }
  /// Returns the names of the feeds, targets and fetches of the request, each with its kind, in the order in which they were added. Equal
  /// requests have equal signatures.
  [[nodiscard]] const std::string& signature() {
    if (is_same_) { begin_other(); }
    return signature_;
  }
  /// Returns the fed tensors, in the order of the feeds in the signature.
  [[nodiscard]] const std::vector<fed_value>& fed() const noexcept { return fed_; }
  /// Replaces the fed tensor number `index` by `own`.
  void replace_fed(std::size_t index, tensor own) { fed_[index] = fed_value(std::move(own)); }
  [[nodiscard]] bool has_targets() const noexcept { return has_targets_; }

  // A signature has four parts for each name: a mark of its kind, the size of the name, the name, and a zero byte. The mark of a fetch
  // contains the expected dtype.
  static constexpr char feed_mark = 1;
  static constexpr char target_mark = 2;
  static constexpr char train_op_mark = 3;  // with an empty name
  static constexpr char fetch_mark = 32;

  /// A name in a signature.
  struct marked_name {
    char mark;
    std::string_view name;
    std::size_t end;  // position behind the name, where the next one begins
  };
  /// Returns the name that begins at `position`. @pre `position` is less than the size of `signature`.
  [[nodiscard]] static marked_name name_at(const std::string& signature, std::size_t position) noexcept {
    const char* const at = signature.data() + position;
    const auto size = size_of_name(at);
    return {*at, {at + head_size, size}, position + head_size + size + 1};
  }

private:
  /// Takes an element of a list of feeds, which may be a temporary.
  template<class Key, class Value>
  void take_element(const stepwell::fed<Key, Value>& one) {
    if constexpr (std::same_as<Value, tensor>) {
      add_key(feed_mark, one.key);
      fed_.emplace_back(one.value.for_graph(0));
    } else {
      take(one);
    }
  }

  template<names_tensor Key>
  void add_key(char mark, const Key& key) {
    if constexpr (std::is_convertible_v<const Key&, const char*>) {
      add(mark, static_cast<const char*>(key));
    } else {
      detail::with_name(key, [&](std::string_view name) { add(mark, name); });
    }
  }

  static constexpr std::size_t head_size = 1 + sizeof(std::size_t);  // of the mark and the size before a name

  static std::size_t size_of_name(const char* at) noexcept {
    std::size_t size = 0;
    std::memcpy(&size, at + 1, sizeof(size));
    return size;
  }

  /// Adds a name. As long as the names are those of the previous request, they are only compared.
  /// @errors `invalid_argument_error` if `name` contains a zero byte.
  void add(char mark, std::string_view name) {
    const auto size = name.size();
    if (is_same_) [[likely]] {
      const char* const at = signature_.c_str() + position_;  // a zero byte at the end, which is no mark
      if (*at == mark && size_of_name(at) == size && (size == 0 || std::memcmp(at + head_size, name.data(), size) == 0)) [[likely]] {
        position_ += head_size + size + 1;
        return;
      }
    }
    add_other(mark, name);
  }
  /// Faster than the function above, because it reads `name` once.
  void add(char mark, const char* name);
  /// Adds a name that the previous request does not have here.
  void add_other(char mark, std::string_view name);

  /// Ends the comparison with the previous request: this one is another.
  void begin_other() {
    signature_.resize(position_);
    is_same_ = false;
    plan_ = nullptr;
  }

  std::string signature_;      // of this request if `is_same_` is false, else of the previous one
  call_plan* plan_ = nullptr;  // of `signature_`, or null
  std::size_t position_ = 0;   // end of the part of `signature_` that is the same in this request
  bool is_same_ = true;
  std::vector<fed_value> fed_;
  bool has_targets_ = false;
};

}  // namespace detail
}  // namespace stepwell::tensorflow

namespace stepwell {

/// Returns a fetch whose value has the C++ type `T`: `const auto [loss] = session.run(fetch<float>("loss:0"))`. `T` is a number, a
/// `std::string`, a `std::vector` of numbers or strings, or a `tensorflow::tensor`. The run checks the dtype of the fetched tensor before
/// it begins.
template<class T>
  requires(tensor_element<T> || std::same_as<T, std::string> || std::same_as<T, tensorflow::tensor> || tensorflow::detail::is_vector<T>)
[[nodiscard]] fetch_pack<tensorflow::typed_fetch<T>> fetch(std::string name) {
  return fetch_pack<tensorflow::typed_fetch<T>>(std::tuple(tensorflow::typed_fetch<T>(std::move(name))));
}

/// Returns a list of operations that a run executes: `session.run(target("train_op"))`. Each argument is a name or a handle. A target gives
/// no value.
template<tensorflow::detail::names_tensor... Operations>
[[nodiscard]] tensorflow::target_list target(const Operations&... operations) {
  std::vector<std::string> names;
  (tensorflow::detail::with_name(operations, [&](std::string_view name) { names.emplace_back(name); }), ...);
  return tensorflow::target_list(std::move(names));
}

}  // namespace stepwell
