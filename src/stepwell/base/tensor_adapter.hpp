// SPDX-License-Identifier: Apache-2.0
//
// How tensors of other libraries are seen that do not look like one (data, size, shape): by an adapter for their type.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace stepwell {

/// Specialise it for a type to make it a variable, and what can be fetched, summed up and watched for NaN:
///
///     static constexpr bool is_writable;  // the elements of a `T&` can be assigned to
///     static constexpr bool is_borrowed;  // a temporary will do: it refers to elements that live elsewhere
///     static tensor_view view(const T& value);  // nothing is copied; throws invalid_argument_error if the elements are
///                                               // not contiguous in row-major order
///
/// `stepwell/eigen/eigen.hpp` and `stepwell/torch/torch.hpp` do so.
template<class T>
struct tensor_adapter;

/// Elements of a variable that `tensor_view` cannot refer to, on a GPU for instance: copied for each snapshot, and back for each
/// restore. An adapter of tensors that may lie there has
///
///     static std::shared_ptr<device_elements> on_device(const T& value);  // null: `view` refers to the elements
class device_elements {
public:
  virtual ~device_elements();

  /// Type and shape, without bytes.
  [[nodiscard]] virtual tensor_view description() const = 0;
  /// Copies all elements, in row-major order. @pre `to` has their size. @errors Those of the device.
  virtual void copy_to(std::span<std::byte> to) const = 0;
  virtual void copy_from(std::span<const std::byte> from) = 0;
};

/// A tensor of ours.
template<>
struct tensor_adapter<tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = false;

  /// @errors `invalid_argument_error` for one of strings, or without elements of any type.
  static tensor_view view(const tensor& value);
};
template<>
struct tensor_adapter<tensor_view> {
  static constexpr bool is_writable = false;
  static constexpr bool is_borrowed = true;

  static tensor_view view(const tensor_view& value) { return value; }
};

/// A type with an adapter.
template<class T>
concept adapted_tensor = requires(const std::remove_cvref_t<T>& value) {
  { tensor_adapter<std::remove_cvref_t<T>>::view(value) } -> std::same_as<tensor_view>;
};

namespace detail {

/// Calls `see` with the elements of a tensor of floats or doubles, and returns what it returns; `otherwise` for others.
template<class See, class Result>
Result see_floats(const tensor_view& values, See&& see, Result otherwise) {
  const auto elements = [&]<class Element>(Element) {
    return std::span(reinterpret_cast<const Element*>(values.bytes.data()), values.bytes.size() / sizeof(Element));
  };
  if (values.dtype == dtype::float32) { return see(elements(float{})); }
  if (values.dtype == dtype::float64) { return see(elements(double{})); }
  return otherwise;
}

}  // namespace detail
}  // namespace stepwell
