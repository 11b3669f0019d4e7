// SPDX-License-Identifier: Apache-2.0
//
// A tensor of TensorFlow: the value of a fetch, or of a feed.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::tensorflow {

class tensor;

namespace detail {

namespace c {
struct tensor;
}

/// A tensor of the library, the properties of it that are read often, and the number of its owners.
struct tensor_memory {
  /// Takes the ownership of `taken`. `is_ours`: the graph does not hold the elements.
  tensor_memory(c::tensor* taken, dtype type, bool is_ours) noexcept;
  tensor_memory(const tensor_memory&) = delete;
  tensor_memory& operator=(const tensor_memory&) = delete;
  ~tensor_memory();

  /// Takes the ownership of `taken`, a tensor that was fetched. @pre `raw` is null.
  void hold(c::tensor* taken, dtype type) noexcept;
  /// Deletes the tensor of the library.
  void empty() noexcept;

  c::tensor* raw = nullptr;
  void* data = nullptr;
  std::size_t bytes = 0;
  dtype type = dtype::invalid;
  int rank = 0;
  bool has_fixed_size = false;     // of an element; follows from `type`, but a step should not look it up
  std::atomic<bool> is_exclusive;  // false if the graph may hold the elements, too
  std::atomic<long> owners = 1;
  std::atomic<std::int64_t> checked = 0;  // number of the feed for which dtype and shape were found right
};

/// An owner of a `tensor_memory`, or null. In contrast to `std::shared_ptr`, the only owner can be sure that it is the only one: it sees
/// everything that earlier owners did, and may use the memory for another tensor.
class tensor_owner {
public:
  tensor_owner() noexcept = default;
  /// Takes over the first ownership of `made`.
  explicit tensor_owner(tensor_memory* made) noexcept : memory_(made) {}
  tensor_owner(const tensor_owner& other) noexcept : memory_(other.memory_) {
    if (memory_ != nullptr) { memory_->owners.fetch_add(1, std::memory_order_relaxed); }
  }
  tensor_owner(tensor_owner&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  tensor_owner& operator=(tensor_owner other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~tensor_owner() {
    if (memory_ != nullptr && memory_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) { destroy(); }
  }

  /// @pre Not null.
  [[nodiscard]] bool is_only_owner() const noexcept { return memory_->owners.load(std::memory_order_acquire) == 1; }
  [[nodiscard]] long owners() const noexcept { return memory_->owners.load(std::memory_order_acquire); }
  [[nodiscard]] tensor_memory& operator*() const noexcept { return *memory_; }
  [[nodiscard]] tensor_memory* operator->() const noexcept { return memory_; }
  explicit operator bool() const noexcept { return memory_ != nullptr; }

private:
  void destroy() noexcept;

  tensor_memory* memory_ = nullptr;
};

/// An expression that has a shape, and computes its elements when they are read, such as `2 * x` of a library for tensors.
template<class T>
concept shaped_range = !tensor_like<const T> && requires(const T& value) {
  { std::begin(value.shape()) } -> std::input_iterator;
  value.begin() != value.end();
} && tensor_element<std::remove_cvref_t<decltype(*std::declval<const T&>().begin())>>;

template<class T>
concept string_like = std::convertible_to<const T&, std::string_view>;

template<class T>
inline constexpr bool is_vector = false;
template<class Element>
inline constexpr bool is_vector<std::vector<Element>> = true;

template<class T>
concept string_range = !string_like<T> && std::ranges::sized_range<const T> && string_like<std::ranges::range_value_t<T>>;

/// Throws an `invalid_argument_error` with the message that the tensor `found` does not hold `wanted`.
[[noreturn]] void throw_other_elements(const tensor& found, std::string_view wanted);
/// Throws an `invalid_argument_error` with the message that the elements of `found` have no fixed size.
[[noreturn]] void throw_no_fixed_size(const tensor& found);
/// Stores the shape of a tensor in `to`.
void copy_shape(const tensor_memory& memory, tensor_shape& to);
/// Returns the shape of a tensor.
[[nodiscard]] tensor_shape shape_of(const tensor_memory& memory);

}  // namespace detail

/// A type from which a tensor can be made: a number, a string, a range of numbers or strings, a `tensor`, a tensor type of another library
/// (such as a matrix of Eigen), or an expression with a shape.
template<class T>
concept tensor_source = std::same_as<T, tensor> || lazy_tensor<T> || variable_like<const T> || detail::string_like<T> ||
                        detail::string_range<T> || detail::shaped_range<T>;

/// A tensor that owns its elements: numbers in row-major order, or strings.
///
/// Copies are cheap: they share the elements until one of the copies is accessed for writing. A fetched tensor may share its memory with a
/// variable of the graph; the first access for writing copies the elements.
/// @threads Like a standard container: several threads may read one tensor at the same time.
class tensor {
public:
  /// Creates a tensor without elements and without a type.
  tensor() noexcept = default;
  /// Creates a tensor of this shape, whose elements are zero, or empty strings.
  /// @errors `invalid_argument_error` for a dtype whose elements have no fixed size and are not strings, and for a shape with a negative
  ///   dimension or too many elements. `resource_exhausted_error` if the memory cannot be allocated.
  tensor(stepwell::dtype type, tensor_shape shape);
  /// Copies `value`. A range becomes a tensor of rank 1.
  template<class T>
    requires(tensor_source<T> && !std::same_as<T, tensor>)
  explicit tensor(const T& value) : tensor(make(value)) {}

  /// Returns true if the tensor has a type. Returns false for a tensor made by the default constructor.
  [[nodiscard]] bool has_value() const noexcept { return static_cast<bool>(memory_); }
  [[nodiscard]] stepwell::dtype dtype() const noexcept { return memory_ ? memory_->type : stepwell::dtype::invalid; }
  [[nodiscard]] tensor_shape shape() const { return memory_ && memory_->rank > 0 ? detail::shape_of(*memory_) : tensor_shape(); }
  /// Returns the number of elements.
  [[nodiscard]] std::size_t size() const noexcept;

  /// Returns the elements. `T` is the C++ type of the dtype, such as `float`.
  /// @errors `invalid_argument_error` if the dtype differs.
  /// @lifetime The span is valid until the tensor is assigned, destroyed, or accessed for writing by a later call.
  template<tensor_element T>
  [[nodiscard]] std::span<const T> span() const {
    check_type(dtype_of<T>);
    return {static_cast<const T*>(data()), size()};
  }
  /// Like the function above, but for writing. If the elements are shared with another tensor or with the graph, copies them first.
  template<tensor_element T>
  [[nodiscard]] std::span<T> span() {
    check_type(dtype_of<T>);
    return {static_cast<T*>(own_data()), size()};
  }

  /// Returns the value as a C++ type: the only element as a number or a `std::string`, all elements as a `std::vector` of numbers or
  /// strings, or a copy of the tensor.
  /// @errors `invalid_argument_error` if the dtype is not that of the elements of `T`. If `T` is a number or a `std::string`: also if the
  /// tensor does not have exactly one element.
  template<class T>
  [[nodiscard]] T as() const {
    if constexpr (std::same_as<T, tensor>) {
      return *this;
    } else if constexpr (std::same_as<T, std::string>) {
      check_scalar();
      return string(0);
    } else if constexpr (std::same_as<T, std::vector<std::string>>) {
      return strings();
    } else if constexpr (detail::is_vector<T>) {
      const auto elements = span<typename T::value_type>();
      return T(elements.begin(), elements.end());
    } else {
      static_assert(tensor_element<T>, "stepwell: a fetched tensor is read as a number, a std::string, a std::vector of them, or a tensor");
      const auto elements = span<T>();
      check_scalar();
      return elements[0];
    }
  }

  /// Returns all elements of a tensor of strings. @errors `invalid_argument_error` if the dtype is not `string`.
  [[nodiscard]] std::vector<std::string> strings() const;
  /// Returns the string number `i`. @pre `i < size()`. @errors Those of `strings`.
  [[nodiscard]] std::string string(std::size_t i) const;

  /// Returns the elements as bytes. Empty for a tensor of strings.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (!memory_ || !memory_->has_fixed_size) { return {}; }
    return {static_cast<const std::byte*>(memory_->data), memory_->bytes};
  }
  /// Returns a view of the elements. @errors `invalid_argument_error` for elements without a fixed size, such as strings.
  [[nodiscard]] tensor_view view() const {
    const auto all = elements();
    return {all.dtype, shape(), all.bytes};
  }
  /// Like `view`, without the shape. Allocates nothing. @errors Those of `view`.
  [[nodiscard]] elements_view elements() const {
    if (!memory_) [[unlikely]] { return {}; }
    if (!memory_->has_fixed_size) [[unlikely]] { detail::throw_no_fixed_size(*this); }
    return {memory_->type, {static_cast<const std::byte*>(memory_->data), memory_->bytes}};
  }
  /// Stores the shape in `to`. Allocates nothing if `to` has the capacity.
  void copy_shape(tensor_shape& to) const {
    if (!memory_ || memory_->rank == 0) {
      to.clear();
    } else {
      detail::copy_shape(*memory_, to);
    }
  }

  /// Creates a tensor of strings. @errors `invalid_argument_error` if the number of strings is not the number of elements of the shape.
  [[nodiscard]] static tensor of_strings(std::span<const std::string> elements, tensor_shape shape);

  // For the adapter:

  /// Takes the ownership of `fetched`, a tensor of TensorFlow's library. If `may_alias` is true, the graph may write to the memory of
  /// `fetched`, so the elements are copied.
  [[nodiscard]] static tensor take(detail::c::tensor* fetched, bool may_alias);
  /// Returns a tensor for a feed, whose elements the graph may keep. The result shares the elements in two cases: an earlier run may
  /// already have given them to the graph (the next access for writing copies them then), or at most `owners` objects of type `tensor`
  /// share them. Otherwise the elements are copied, because another `tensor` object shares them, and a writable span of that object may
  /// still exist.
  [[nodiscard]] tensor for_graph(long owners) const;
  /// Returns true if `for_graph` would not copy the elements, and notes that the graph may keep them. Returns false otherwise.
  [[nodiscard]] bool give_to_graph(long owners) const noexcept {
    if (!memory_ || !memory_->is_exclusive.load(std::memory_order_relaxed)) { return true; }
    if (memory_.owners() > owners) { return false; }
    memory_->is_exclusive.store(false, std::memory_order_relaxed);
    return true;
  }
  /// Like `take`, for a tensor that holds the values of one fetch in many runs, and was released after the previous run. `type` is the
  /// dtype of `fetched`. Allocates nothing if the elements are not copied, or if they are few and the previous value had the same shape.
  void refill(detail::c::tensor* fetched, stepwell::dtype type, bool may_alias);
  /// Deletes the tensor of TensorFlow's library, unless another tensor shares it. A copy of few elements stays, for `refill`. Then this
  /// tensor may only be refilled, assigned or destroyed.
  void release() noexcept {
    if (!memory_) { return; }
    const bool is_kept = memory_.is_only_owner() && memory_->is_exclusive.load(std::memory_order_relaxed) &&
                         memory_->type != dtype::string && memory_->bytes <= kept_bytes;
    if (!is_kept) { give_up_memory(); }
  }
  /// Returns the tensor of TensorFlow's library. Null for a tensor without a type.
  [[nodiscard]] detail::c::tensor* raw() const noexcept { return memory_ ? memory_->raw : nullptr; }
  /// Returns true if `check` was called with the number of this feed.
  [[nodiscard]] bool is_checked(std::int64_t feed) const noexcept {
    return memory_ && memory_->checked.load(std::memory_order_relaxed) == feed;
  }
  /// Notes that dtype and shape are right for the feed with this number.
  void check(std::int64_t feed) const noexcept { memory_->checked.store(feed, std::memory_order_relaxed); }

private:
  static constexpr std::size_t kept_bytes = 4096;  // a copy up to this size is kept for the next run

  explicit tensor(const tensor_view& value, std::nullptr_t);
  void give_up_memory() noexcept;
  void take_over(detail::c::tensor* fetched, stepwell::dtype type, bool may_alias);

  template<class T>
  static tensor make(const T& value) {
    if constexpr (detail::string_like<T>) {
      const std::string text{std::string_view(value)};
      return of_strings({&text, 1}, {});
    } else if constexpr (detail::string_range<T>) {
      std::vector<std::string> all;
      for (const auto& one : value) { all.emplace_back(std::string_view(one)); }
      return of_strings(all, {static_cast<std::int64_t>(all.size())});
    } else if constexpr (std::same_as<T, stepwell::tensor>) {
      return value.dtype() == dtype::string ? of_strings(value.strings(), value.shape()) : tensor(value.view(), nullptr);
    } else if constexpr (lazy_tensor<T>) {
      tensor_shape shape;
      tensor_adapter<T>::copy_shape(value, shape);
      tensor made(tensor_adapter<T>::element_type, std::move(shape));
      tensor_adapter<T>::evaluate(value, 0, made.bytes());
      return made;
    } else if constexpr (variable_like<const T>) {
      return tensor(stepwell::view_of(value), nullptr);
    } else {
      using element = std::remove_cvref_t<decltype(*value.begin())>;
      tensor made(dtype_of<element>, stepwell::detail::as_shape(value.shape()));
      std::copy(value.begin(), value.end(), made.span<element>().begin());  // std::ranges::copy rejects iterators of expressions
      return made;
    }
  }

  [[nodiscard]] const void* data() const noexcept { return memory_ ? memory_->data : nullptr; }
  [[nodiscard]] void* own_data();
  void check_type(stepwell::dtype wanted) const {
    if (dtype() != wanted) [[unlikely]] { detail::throw_other_elements(*this, to_string(wanted)); }
  }
  void check_scalar() const {
    if (size() != 1) [[unlikely]] { detail::throw_other_elements(*this, "exactly one element"); }
  }

  detail::tensor_owner memory_;
};

}  // namespace stepwell::tensorflow

/// Makes fetched tensors usable in hooks: for NaN checks, log lines and summaries.
template<>
struct stepwell::tensor_adapter<stepwell::tensorflow::tensor> {
  static constexpr bool is_writable = false;
  static constexpr bool is_borrowed = false;

  static tensor_view view(const tensorflow::tensor& value) { return value.view(); }
  static elements_view elements(const tensorflow::tensor& value) { return value.elements(); }
  static void copy_shape(const tensorflow::tensor& value, tensor_shape& to) { value.copy_shape(to); }
};
