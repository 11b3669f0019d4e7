// SPDX-License-Identifier: Apache-2.0
//
// Tensors as every room passes them on: a shape, a view of somebody's bytes, and one that owns them.
#pragma once

#include "stepwell/base/dtype.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

/// Sizes of the dimensions, slowest first; rank 0 is a scalar.
using tensor_shape = std::vector<std::int64_t>;

/// Elements of a tensor of this shape: 1 for a scalar. @pre No dimension is negative, the product fits.
[[nodiscard]] inline std::int64_t element_count(const tensor_shape& shape) noexcept {
  std::int64_t count = 1;
  for (const auto size : shape) { count *= size; }
  return count;
}

/// "[2,3]"; "[]" for a scalar.
[[nodiscard]] std::string to_string(const tensor_shape& shape);

/// Somebody's row-major elements of a fixed-size dtype, seen but not owned.
/// @lifetime Valid as long as the bytes it was made of.
struct tensor_view {
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::span<const std::byte> bytes;
};

/// A tensor that owns its elements: bytes for a fixed-size dtype, strings for `dtype::string`.
class tensor {
public:
  tensor() noexcept;
  /// `element_count(shape)` zero elements (empty strings). @pre `type` is a string or has a fixed size.
  tensor(stepwell::dtype type, tensor_shape shape);
  tensor(const tensor&);
  tensor(tensor&&) noexcept;
  tensor& operator=(const tensor&);
  tensor& operator=(tensor&&) noexcept;
  ~tensor();

  [[nodiscard]] stepwell::dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] const tensor_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {bytes_.data(), bytes_.size()}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.data(), bytes_.size()}; }
  [[nodiscard]] std::span<std::string> strings() noexcept { return {strings_.data(), strings_.size()}; }
  [[nodiscard]] std::span<const std::string> strings() const noexcept { return {strings_.data(), strings_.size()}; }
  [[nodiscard]] tensor_view view() const { return {dtype_, shape_, bytes()}; }

  /// The elements as `T`. @pre `dtype_of<T>` is this tensor's dtype.
  template<tensor_element T>
  [[nodiscard]] std::span<const T> as() const {
    assert(dtype_of<T> == dtype_);
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template<tensor_element T>
  [[nodiscard]] std::span<T> as() {
    assert(dtype_of<T> == dtype_);
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  /// A scalar of `value`.
  template<tensor_element T>
  [[nodiscard]] static tensor scalar(T value) {
    tensor made(dtype_of<T>, {});
    std::memcpy(made.bytes_.data(), &value, sizeof(T));
    return made;
  }

private:
  stepwell::dtype dtype_ = dtype::invalid;
  tensor_shape shape_;
  std::vector<std::byte> bytes_;
  std::vector<std::string> strings_;
};

}  // namespace stepwell
