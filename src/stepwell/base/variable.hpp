// SPDX-License-Identifier: Apache-2.0
//
// Names for live memory: what a checkpoint holds of a model. Tensors are recognised by what they offer
// (data, shape, strides), or have an adapter, so no tensor library is included here.
#pragma once

#include "stepwell/base/dtype.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/tensor_adapter.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// A tensor by duck typing: contiguous elements and the sizes of its dimensions (xtensor containers, and alike).
template<class T>
concept tensor_like = requires(T& value) {
  { *value.data() } -> std::convertible_to<typename std::remove_cvref_t<T>::value_type>;
  { value.size() } -> std::convertible_to<std::size_t>;
  { std::begin(value.shape()) } -> std::input_iterator;
} && tensor_element<typename std::remove_cvref_t<T>::value_type>;

/// A list of fixed-size elements: std::vector, std::array, std::span.
template<class T>
concept element_range =
    !tensor_like<T> && std::ranges::contiguous_range<T> && std::ranges::sized_range<T> && tensor_element<std::ranges::range_value_t<T>>;

/// What can be a variable: a scalar, a list of elements, a tensor, or what is adapted to be one.
template<class T>
concept variable_like = tensor_element<std::remove_cvref_t<T>> || adapted_tensor<T> || element_range<T> || tensor_like<T>;

namespace detail {

/// True when `strides` are those of a row-major tensor; a dimension of size one may have any stride.
[[nodiscard]] bool is_row_major(const tensor_shape& shape, const tensor_shape& strides);

/// Sizes, or strides, of whatever type.
template<class Sizes>
tensor_shape as_shape(const Sizes& sizes) {
  tensor_shape shape;
  for (const auto size : sizes) { shape.push_back(static_cast<std::int64_t>(size)); }
  return shape;
}

inline std::span<const std::byte> bytes_at(const void* first, std::size_t size) { return {static_cast<const std::byte*>(first), size}; }

[[noreturn]] void throw_not_row_major();
/// Throws an error of the same kind whose message names the variable.
[[noreturn]] void throw_named(const std::string& name, const error& failure);

template<class T>
concept has_strides = requires(T& value) { std::begin(value.strides()); };

/// The first element: a view into a larger tensor tells how far behind `data()` it lies.
template<class T>
auto* first_element(T& value) {
  if constexpr (requires {
                  { value.data_offset() } -> std::convertible_to<std::ptrdiff_t>;
                }) {
    return value.data() + static_cast<std::ptrdiff_t>(value.data_offset());
  } else {
    return value.data();
  }
}

/// The elements of a variable that are copied to be saved; null where `view_of` refers to them.
template<class T>
std::shared_ptr<device_elements> elements_on_device(const T& value) {
  if constexpr (requires { tensor_adapter<T>::on_device(value); }) {
    return tensor_adapter<T>::on_device(value);
  } else {
    return nullptr;
  }
}

/// A view: its elements live elsewhere.
template<class T>
inline constexpr bool refers_to_elements = [] {
  if constexpr (adapted_tensor<T>) {
    return tensor_adapter<std::remove_const_t<T>>::is_borrowed;
  } else {
    return element_range<T> && std::ranges::enable_borrowed_range<T>;
  }
}();

/// True when the elements of a `T&` can be assigned to; a constant span of writable elements is writable.
template<class T>
consteval bool has_writable_elements() {
  if constexpr (tensor_element<T>) {
    return !std::is_const_v<T>;
  } else if constexpr (adapted_tensor<T>) {
    return tensor_adapter<std::remove_const_t<T>>::is_writable &&
           (tensor_adapter<std::remove_const_t<T>>::is_borrowed || !std::is_const_v<T>);
  } else if constexpr (tensor_like<T>) {
    return !std::is_const_v<std::remove_pointer_t<decltype(std::declval<T&>().data())>>;
  } else {
    return !std::is_const_v<std::remove_pointer_t<decltype(std::ranges::data(std::declval<T&>()))>>;
  }
}

}  // namespace detail

/// The dtype, shape and bytes of a scalar, list or tensor; nothing is copied.
/// @errors   `invalid_argument_error` if the elements are not contiguous in row-major order.
/// @lifetime Valid as long as `value` lives and is not resized.
template<variable_like T>
[[nodiscard]] tensor_view view_of(const T& value) {
  if constexpr (tensor_element<T>) {
    return {dtype_of<T>, {}, detail::bytes_at(&value, sizeof(T))};
  } else if constexpr (adapted_tensor<T>) {
    return tensor_adapter<T>::view(value);
  } else if constexpr (tensor_like<const T>) {
    auto shape = detail::as_shape(value.shape());
    if constexpr (detail::has_strides<const T>) {
      if (!detail::is_row_major(shape, detail::as_shape(value.strides()))) { detail::throw_not_row_major(); }
    }
    using element = typename T::value_type;
    return {dtype_of<element>, std::move(shape), detail::bytes_at(detail::first_element(value), value.size() * sizeof(element))};
  } else {
    using element = std::ranges::range_value_t<T>;
    const std::size_t count = std::ranges::size(value);
    return {dtype_of<element>, {static_cast<std::int64_t>(count)}, detail::bytes_at(std::ranges::data(value), count * sizeof(element))};
  }
}

/// One named piece of live memory.
/// @lifetime Refers to the memory it was made of; a session asks for its references anew each time.
class variable_ref {
public:
  template<variable_like T>
  variable_ref(std::string name, T& value) : name_(std::move(name)), view_(view_named(name_, value, device_)) {
    static_assert(detail::has_writable_elements<T>(), "stepwell: a variable must be writable, or it cannot be restored");
  }
  /// A temporary span, as it refers to elements that live elsewhere.
  template<variable_like T>
    requires(!std::is_reference_v<T> && detail::refers_to_elements<T>)
  variable_ref(std::string name, T&& elements) : variable_ref(std::move(name), elements) {}
  /// Elements that are copied to be saved.
  variable_ref(std::string name, std::shared_ptr<device_elements> elements);
  /// A list of variables below `name/`.
  variable_ref(std::string name, std::vector<variable_ref> below);

  variable_ref(const variable_ref&);
  variable_ref(variable_ref&&) noexcept;
  variable_ref& operator=(const variable_ref&);
  variable_ref& operator=(variable_ref&&) noexcept;
  ~variable_ref();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const tensor_view& view() const noexcept { return view_; }
  [[nodiscard]] stepwell::dtype dtype() const noexcept { return view_.dtype; }
  [[nodiscard]] const tensor_shape& shape() const noexcept { return view_.shape; }
  [[nodiscard]] std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(element_count(view_.shape)) * size_of(view_.dtype);
  }
  /// The elements; empty if they lie on a device.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return view_.bytes; }
  [[nodiscard]] std::span<std::byte> writable_bytes() const noexcept {
    return {const_cast<std::byte*>(view_.bytes.data()), view_.bytes.size()};  // made of writable elements
  }
  /// Copies the elements, wherever they lie. @pre `to` has `size_bytes()`. @errors Those of the device, naming the variable.
  void copy_to(std::span<std::byte> to) const;
  /// Assigns to the elements, wherever they lie. @pre `from` has `size_bytes()`. @errors As `copy_to`.
  void copy_from(std::span<const std::byte> from) const;
  /// True if `bytes()` refers to the elements.
  [[nodiscard]] bool is_addressable() const noexcept { return device_ == nullptr; }
  [[nodiscard]] const std::vector<variable_ref>& below() const noexcept { return below_; }

  /// The same memory under another name.
  [[nodiscard]] variable_ref renamed(std::string name) const;

private:
  template<class T>
  static tensor_view view_named(const std::string& name, const T& value, std::shared_ptr<device_elements>& device) {
    try {
      device = detail::elements_on_device(value);
      return device ? device->description() : view_of(value);
    } catch (const invalid_argument_error& failure) { detail::throw_named(name, failure); }
  }

  std::string name_;
  std::shared_ptr<device_elements> device_;  // null: `view_` has the bytes
  tensor_view view_;
  std::vector<variable_ref> below_;
};

/// What a checkpoint holds: variables in a fixed order, lists already flattened ("encoder/weights").
using variable_list = std::vector<variable_ref>;

/// Names for live memory: `variables({{"weights", weights}, {"encoder", encoder.variables()}})`.
/// @errors   `invalid_argument_error` naming the variable whose elements are not contiguous and row-major.
/// @lifetime The references are good until a variable is resized, moved or destroyed.
[[nodiscard]] variable_list variables(std::initializer_list<variable_ref> entries);

}  // namespace stepwell
