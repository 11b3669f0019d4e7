// SPDX-License-Identifier: Apache-2.0
//
// Adapters for tensor types of other libraries that lack the members `data`, `size` and `shape`.
#pragma once

#include "stepwell/base/tensor.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace stepwell {

/// Customisation point: makes `T` usable as a variable, as a fetched value, as a summary value, and as a value watched for NaN.
/// A specialisation has these members:
///
///     static constexpr bool is_writable;  // the elements of a `T&` can be assigned to
///     static constexpr bool is_borrowed;  // a temporary is accepted, because it refers to elements owned by another object
///     static tensor_view view(const T& value);  // copies nothing; throws invalid_argument_error if the elements are not
///                                               // contiguous in row-major order
///
/// `stepwell/eigen/eigen.hpp` and `stepwell/torch/torch.hpp` contain examples.
template<class T>
struct tensor_adapter;

/// The elements of a variable in memory that a `tensor_view` cannot refer to, such as the memory of a GPU. They are copied for each
/// snapshot, and copied back for each restore. The adapter of a tensor type with such elements has this member:
///
///     static std::shared_ptr<device_elements> on_device(const T& value);  // null if `view` refers to the elements
class device_elements {
public:
  virtual ~device_elements();

  /// Returns the type and the shape, without bytes.
  [[nodiscard]] virtual tensor_view description() const = 0;
  /// Copies all elements to `to`, in row-major order. @pre `to` has the size of all elements in bytes. @errors Errors of the device.
  virtual void copy_to(std::span<std::byte> to) const = 0;
  /// Assigns `from` to all elements, in row-major order. @pre `from` has the size of all elements in bytes. @errors Errors of the device.
  virtual void copy_from(std::span<const std::byte> from) = 0;
};

/// The adapter of stepwell's own `tensor`.
template<>
struct tensor_adapter<tensor> {
  static constexpr bool is_writable = true;
  static constexpr bool is_borrowed = false;

  /// Returns a view of the elements. @errors `invalid_argument_error` if the dtype has no fixed size, as `dtype::string`.
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

/// Calls `see` with the elements if they are floats or doubles, and returns its result. Returns `otherwise` for other types.
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
