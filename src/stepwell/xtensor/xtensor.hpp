// SPDX-License-Identifier: Apache-2.0
//
// Adapter for xtensor: containers, adaptors and views as variables, and any expression as a value for fetches, summaries, logs, NaN guards
// and metrics. Link `stepwell::xtensor`. Include this header before any header of xtensor, and in each source file that gives xtensor types
// to stepwell.
//
// Tensors in a checkpoint are row-major. A column-major container, or a view whose elements are not contiguous, keeps its shape; each save
// and each restore copies its elements one by one.
//
// An expression such as `2 * x` is evaluated in blocks that fit into the first-level cache. If XTENSOR_USE_XSIMD is defined, xtensor
// computes the blocks of most expressions of row-major containers with SIMD instructions. An expression holds references to the named
// objects from which it is made. A function that returns an expression must not make it from local variables:
//
//     summary::histogram("update", [](const result& r) { return r.rate * r.gradient; })                    // right
//     summary::histogram("update", [](const result& r) { auto x = 2 * r.gradient; return r.rate * x; })    // wrong: refers to x
//     summary::histogram("update", [](const result& r) { auto x = 2 * r.gradient; return xt::eval(r.rate * x); })  // right
#pragma once

#include "stepwell/xtensor/xtensor_fix.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#if __has_include(<xtensor/containers/xtensor.hpp>)  // since xtensor 0.26
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xassign.hpp>
#include <xtensor/core/xeval.hpp>
#include <xtensor/core/xoperation.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xassign.hpp>
#include <xtensor/xeval.hpp>
#include <xtensor/xoperation.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xview.hpp>
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace half_float {
class half;  // xtensor's 16-bit number, in xtl/xhalf_float.hpp
}

namespace stepwell {
namespace xtensor {

/// The dtype of an element of xtensor: `half` for `xtl::half_float`, and `dtype_of` for all other types.
template<class Element>
inline constexpr dtype dtype_of_element = std::same_as<Element, half_float::half> ? dtype::half : dtype_of<Element>;

/// An xtensor type whose elements have a dtype: a container, an adaptor, a view, or any other expression. `xt::xoptional` has no dtype.
template<class T>
concept expression = xt::is_xexpression<T>::value && size_of(dtype_of_element<typename T::value_type>) != 0;

namespace detail {

/// An expression whose elements are in memory, at the distances that `strides()` returns.
template<class T>
concept stored = expression<T> && requires(const T& value) {
  { *value.data() } -> std::same_as<const typename T::value_type&>;
  value.strides().begin();
};

/// A `stored` type whose static layout is row-major.
template<class T>
concept row_major = stored<T> && T::static_layout == xt::layout_type::row_major;

/// True for views and adaptors whose elements belong to another object.
template<class T>
inline constexpr bool is_reference = false;
template<class Of, class... Slices>
inline constexpr bool is_reference<xt::xview<Of, Slices...>> = std::is_lvalue_reference_v<Of> || is_reference<Of>;
template<class Of, class Shape, xt::layout_type L, class Flat>
inline constexpr bool is_reference<xt::xstrided_view<Of, Shape, L, Flat>> = std::is_lvalue_reference_v<Of> || is_reference<Of>;
template<class Of, std::size_t N, xt::layout_type L, class Tag>
inline constexpr bool is_reference<xt::xtensor_adaptor<Of, N, L, Tag>> = std::is_lvalue_reference_v<Of> || is_reference<Of>;
template<class Of, xt::layout_type L, class Shape, class Tag>
inline constexpr bool is_reference<xt::xarray_adaptor<Of, L, Shape, Tag>> = std::is_lvalue_reference_v<Of> || is_reference<Of>;
template<class Pointer, class Allocator>
inline constexpr bool is_reference<xt::xbuffer_adaptor<Pointer, xt::no_ownership, Allocator>> = true;

/// The type `Evaluated`, or for an adaptor, which `xt::eval` returns unchanged, that of a container with its own elements.
template<class Evaluated>
struct owner {
  using type = Evaluated;
};
template<class Evaluated>
  requires is_reference<Evaluated>
struct owner<Evaluated> {
  using type = std::remove_cvref_t<decltype(xt::eval(xt::cast<typename Evaluated::value_type>(std::declval<const Evaluated&>())))>;
};

/// An expression whose elements can be assigned to.
template<class T>
concept writable = expression<T> && requires(T& value, const typename T::value_type& element) { *value.begin() = element; } &&
                   std::is_lvalue_reference_v<decltype(*std::declval<T&>().begin())>;

template<class T>
[[nodiscard]] bool is_contiguous(const T& value) noexcept {
  std::ptrdiff_t stride = 1;
  for (std::size_t i = value.dimension(); i-- > 0;) {
    const auto size = static_cast<std::ptrdiff_t>(value.shape()[i]);
    if (size != 1 && value.strides()[i] != stride && value.size() > 1) { return false; }
    stride *= size;
  }
  return true;
}

/// Returns a view of `size` elements in memory.
template<class Element>
[[nodiscard]] auto adapted(Element* elements, std::size_t size) {
  return xt::adapt(elements + 0, size, xt::no_ownership(), std::array<std::size_t, 1>{size});
}

/// Returns true if element number i of `value`, in row-major order, is element number i of each container from which `value` is made.
template<class T>
[[nodiscard]] bool is_linear(const T& value) {
  xt::svector<std::ptrdiff_t, 8> strides(value.dimension());
  xt::compute_strides(value.shape(), xt::layout_type::row_major, strides);
  return value.has_linear_assign(strides);
}

/// Writes the elements of `value` from number `first` on. @pre `is_linear(value)`.
template<class T>
void assign_linear(const T& value, std::size_t first, std::span<typename T::value_type> to) {
  auto target = detail::adapted(to.data(), to.size());
  using traits = xt::xassign_traits<decltype(target), T>;
  std::size_t i = 0;
  if constexpr (traits::simd_linear_assign()) {
    using requested = typename traits::requested_value_type;
    constexpr std::size_t width = xt_simd::simd_type<requested>::size;
    const auto load = [&](std::size_t at) { return value.template load_simd<xt::unaligned_mode, requested>(first + at); };
    // Loads several vectors before it stores them: xtensor reads the pointers and scalars of the expression again after each store.
    for (; to.size() - i >= 4 * width; i += 4 * width) {
      const std::array some{load(i), load(i + width), load(i + 2 * width), load(i + 3 * width)};
      for (std::size_t j = 0; j < some.size(); ++j) { target.template store_simd<xt::unaligned_mode>(i + j * width, some[j]); }
    }
  }
  for (auto next = xt::linear_begin(value) + static_cast<std::ptrdiff_t>(first + i); i < to.size(); ++i, ++next) {
    to[i] = static_cast<typename T::value_type>(*next);
  }
}

/// The elements of a variable if they are not contiguous. Copies them one by one.
template<class T>
class scattered_elements final : public device_elements {
  using element = typename T::value_type;

public:
  explicit scattered_elements(const T& value) : value_(held(value)) {}

  [[nodiscard]] tensor_view description() const override {
    tensor_view view{tensor_adapter<T>::element_type, {}, {}};
    tensor_adapter<T>::copy_shape(value(), view.shape);
    return view;
  }
  void copy_to(std::span<std::byte> to) const override { tensor_adapter<T>::evaluate(value(), 0, to); }
  void copy_from(std::span<const std::byte> from) override {
    auto target = value().template begin<xt::layout_type::row_major>();
    for (; !from.empty(); from = from.subspan(sizeof(element)), ++target) {
      std::memcpy(static_cast<void*>(std::addressof(*target)), from.data(), sizeof(element));
    }
  }

private:
  static auto held(const T& value) {
    if constexpr (is_reference<T>) {
      return value;  // a copy of the reference
    } else {
      return const_cast<T*>(std::addressof(value));  // variables are writable
    }
  }
  [[nodiscard]] T& value() const {
    if constexpr (is_reference<T>) {
      return value_;
    } else {
      return *value_;
    }
  }

  mutable std::conditional_t<is_reference<T>, T, T*> value_;
};

}  // namespace detail
}  // namespace xtensor

/// Adapter for xtensor types.
template<xtensor::expression T>
struct tensor_adapter<T> {
private:
  using element = typename T::value_type;
  static constexpr bool is_variable = xtensor::detail::stored<T> || xtensor::detail::writable<T>;

public:
  static constexpr bool is_writable = xtensor::detail::writable<T>;
  static constexpr bool is_borrowed = xtensor::detail::is_reference<T>;
  static constexpr dtype element_type = xtensor::dtype_of_element<element>;
  /// The container that `xt::eval` makes of the expression.
  using owner_type = typename xtensor::detail::owner<std::remove_cvref_t<decltype(xt::eval(std::declval<const T&>()))>>::type;

  /// Returns a view of the elements.
  /// @errors `invalid_argument_error` if the elements are not contiguous in row-major order.
  static tensor_view view(const T& value)
    requires is_variable
  {
    const auto all = elements(value);
    tensor_shape shape;
    copy_shape(value, shape);
    return {all.dtype, std::move(shape), all.bytes};
  }
  /// Like `view`, without the shape. @errors Those of `view`.
  static elements_view elements(const T& value)
    requires is_variable
  {
    if constexpr (xtensor::detail::stored<T>) {
      if (xtensor::detail::is_contiguous(value)) {
        return {element_type, detail::bytes_at(detail::first_element(value), value.size() * sizeof(element))};
      }
    }
    detail::throw_not_row_major();
  }
  static void copy_shape(const T& value, tensor_shape& to) { to.assign(value.shape().begin(), value.shape().end()); }
  static std::size_t size(const T& value) { return value.size(); }

  /// Writes consecutive elements in row-major order, from element number `first` on.
  static void evaluate(const T& value, std::size_t first, std::span<std::byte> to)
    requires(!xtensor::detail::row_major<T>)
  {
    if constexpr (xtensor::detail::stored<T>) {
      if (xtensor::detail::is_contiguous(value)) {
        if (!to.empty()) { std::memcpy(to.data(), detail::first_element(value) + first, to.size()); }
        return;
      }
    } else if constexpr (T::static_layout != xt::layout_type::dynamic) {
      const bool is_aligned = reinterpret_cast<std::uintptr_t>(to.data()) % alignof(element) == 0;
      if (is_aligned && xtensor::detail::is_linear(value)) {
        return xtensor::detail::assign_linear(value, first, std::span(reinterpret_cast<element*>(to.data()), to.size() / sizeof(element)));
      }
    }
    auto next = value.template begin<xt::layout_type::row_major>() + static_cast<std::ptrdiff_t>(first);
    for (; !to.empty(); to = to.subspan(sizeof(element)), ++next) {
      const element one = *next;
      std::memcpy(to.data(), &one, sizeof one);
    }
  }
  /// Returns an object that copies the elements one by one. Returns null if the elements are contiguous in row-major order: `view` then
  /// refers to them.
  static std::shared_ptr<device_elements> on_device(const T& value)
    requires(is_variable && is_writable && !xtensor::detail::row_major<T>)
  {
    if constexpr (xtensor::detail::stored<T>) {
      if (xtensor::detail::is_contiguous(value)) { return nullptr; }
    }
    return std::make_shared<xtensor::detail::scattered_elements<T>>(value);
  }
};

}  // namespace stepwell
