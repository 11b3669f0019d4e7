// SPDX-License-Identifier: Apache-2.0
//
// Tensors as all layers exchange them: a shape, a view that does not own its bytes, and a tensor that does.
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

/// The sizes of the dimensions, with the slowest-varying dimension first. Rank 0 is a scalar.
using tensor_shape = std::vector<std::int64_t>;

/// Returns the number of elements of a tensor with this shape: 1 for a scalar.
/// @pre No dimension is negative, and the product fits into the result.
[[nodiscard]] inline std::int64_t element_count(const tensor_shape& shape) noexcept {
  std::int64_t count = 1;
  for (const auto size : shape) { count *= size; }
  return count;
}

/// Returns the shape as text: "[2,3]", or "[]" for a scalar.
[[nodiscard]] std::string to_string(const tensor_shape& shape);

/// A non-owning view of row-major elements of a fixed-size dtype.
/// @lifetime The bytes must outlive the view.
struct tensor_view {
  stepwell::dtype dtype = dtype::invalid;
  tensor_shape shape;
  std::span<const std::byte> bytes;
};

/// A tensor that owns its elements: bytes if the dtype has a fixed size, strings if it is `dtype::string`.
class tensor {
public:
  tensor() noexcept;
  /// Creates `element_count(shape)` elements that are zero, or empty strings. @pre `type` is `dtype::string` or has a fixed size.
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

  /// Returns the elements as `T`. @pre `dtype_of<T>` is the dtype of this tensor.
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

  /// Returns a scalar tensor that holds `value`.
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
