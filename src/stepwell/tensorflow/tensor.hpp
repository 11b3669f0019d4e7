// SPDX-License-Identifier: Apache-2.0
//
// A tensor of TensorFlow: the value of a fetch, or of a feed.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
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
struct tensor_memory;

/// An expression that has a shape, and computes its elements when they are read, such as `2 * x` of xtensor.
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

}  // namespace detail

/// A type from which a tensor can be made: a number, a string, a range of numbers or strings, a `tensor`, a tensor type of another library
/// (such as an xtensor container), or an expression with a shape.
template<class T>
concept tensor_source =
    std::same_as<T, tensor> || variable_like<const T> || detail::string_like<T> || detail::string_range<T> || detail::shaped_range<T>;

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
  [[nodiscard]] bool has_value() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] stepwell::dtype dtype() const noexcept;
  [[nodiscard]] tensor_shape shape() const;
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
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  /// Returns a view of the elements. @errors `invalid_argument_error` for elements without a fixed size, such as strings.
  [[nodiscard]] tensor_view view() const;

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
  /// Returns the tensor of TensorFlow's library. Null for a tensor without a type.
  [[nodiscard]] detail::c::tensor* raw() const noexcept;

private:
  explicit tensor(const tensor_view& value, std::nullptr_t);

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
    } else if constexpr (variable_like<const T>) {
      return tensor(stepwell::view_of(value), nullptr);
    } else {
      using element = std::remove_cvref_t<decltype(*value.begin())>;
      tensor made(dtype_of<element>, stepwell::detail::as_shape(value.shape()));
      std::copy(value.begin(), value.end(), made.span<element>().begin());  // std::ranges::copy rejects iterators of expressions
      return made;
    }
  }

  [[nodiscard]] const void* data() const noexcept;
  [[nodiscard]] void* own_data();
  void check_type(stepwell::dtype wanted) const {
    if (dtype() != wanted) [[unlikely]] { detail::throw_other_elements(*this, to_string(wanted)); }
  }
  void check_scalar() const {
    if (size() != 1) [[unlikely]] { detail::throw_other_elements(*this, "exactly one element"); }
  }

  std::shared_ptr<detail::tensor_memory> memory_;
};

}  // namespace stepwell::tensorflow

/// Makes fetched tensors usable in hooks: for NaN checks, log lines and summaries.
template<>
struct stepwell::tensor_adapter<stepwell::tensorflow::tensor> {
  static constexpr bool is_writable = false;
  static constexpr bool is_borrowed = false;

  static tensor_view view(const tensorflow::tensor& value) { return value.view(); }
};
