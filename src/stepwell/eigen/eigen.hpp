// SPDX-License-Identifier: Apache-2.0
//
// Adapter for Eigen. It allows matrices and arrays as variables, and as the values that hooks fetch, for example for summaries and NaN
// checks. Link `stepwell::eigen`.
//
// Tensors in a checkpoint are row-major, as all readers of the format expect. An Eigen matrix is column-major by default. stepwell never
// transposes implicitly. Declare a matrix `Eigen::RowMajor`, or pass it through `column_major_as_transposed`.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"

#include <Eigen/Core>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace stepwell {
namespace eigen {

/// The dtype of an Eigen scalar: `half` or `bfloat16` for Eigen's 16-bit floating-point types, and `dtype_of` for all other types.
template<class Scalar>
inline constexpr dtype dtype_of_scalar = std::same_as<Scalar, Eigen::half>       ? dtype::half
                                         : std::same_as<Scalar, Eigen::bfloat16> ? dtype::bfloat16
                                                                                 : dtype_of<Scalar>;

namespace detail {
template<class Derived>
void take_dense(const Eigen::DenseBase<Derived>& value);
}

/// An Eigen type whose elements are in memory and have a dtype: Matrix, Array, Map, Ref, and their blocks and transposes. An expression
/// that is not evaluated yet, such as a sum, does not satisfy this concept.
template<class T>
concept dense = requires(const T& value) { detail::take_dense(value); } && (T::Flags & Eigen::DirectAccessBit) != 0 &&
                size_of(dtype_of_scalar<typename T::Scalar>) != 0;

/// A column-major matrix. A vector does not satisfy this concept: its elements have the same order in both layouts.
template<class T>
concept column_major = dense<std::remove_const_t<T>> && !T::IsRowMajor && !T::IsVectorAtCompileTime;

/// Returns the transpose of a column-major matrix of r rows and c columns. The transpose is row-major and uses the memory of `matrix`. A
/// checkpoint stores it with the shape [c,r]. A restore writes it into this memory without a copy:
///
///     variables({{"weights", eigen::column_major_as_transposed(weights)}})
/// @lifetime Refers to `matrix`.
template<column_major Matrix>
[[nodiscard]] Eigen::Transpose<Matrix> column_major_as_transposed(Matrix& matrix) {
  return Eigen::Transpose<Matrix>(matrix);
}

}  // namespace eigen

/// Adapter for Eigen types. Row and column vectors have one dimension; all other types have two, [rows,cols].
template<eigen::dense T>
struct tensor_adapter<T> {
  static constexpr bool is_writable = (T::Flags & Eigen::LvalueBit) != 0;
  static constexpr bool is_borrowed = !std::derived_from<T, Eigen::PlainObjectBase<T>>;

  /// Returns a view of the elements.
  /// @errors `invalid_argument_error` if there are gaps between the elements. Examples: a block that does not consist of whole rows, or a
  ///         Map whose strides leave gaps.
  static tensor_view view(const T& value) {
    const auto flat = elements(value);
    tensor_shape shape;
    copy_shape(value, shape);
    return {flat.dtype, std::move(shape), flat.bytes};
  }
  /// Like `view`, without the shape. @errors Those of `view`.
  static elements_view elements(const T& value) {
    static_assert(!eigen::column_major<T>,
                  "stepwell: this Eigen matrix is column-major, and a checkpoint is row-major: declare it with Eigen::RowMajor, "
                  "or wrap it in stepwell::eigen::column_major_as_transposed(matrix), which stores it with the shape [cols,rows]");
    if (!is_contiguous(value)) {
      throw invalid_argument_error("a variable must be contiguous in row-major order; copy it into an Eigen matrix of its own");
    }
    return {eigen::dtype_of_scalar<typename T::Scalar>, std::as_bytes(std::span(value.data(), static_cast<std::size_t>(value.size())))};
  }
  static void copy_shape(const T& value, tensor_shape& to) {
    if constexpr (T::IsVectorAtCompileTime) {
      to = {static_cast<std::int64_t>(value.size())};
    } else {
      to = {static_cast<std::int64_t>(value.rows()), static_cast<std::int64_t>(value.cols())};
    }
  }

private:
  static bool is_contiguous(const T& value) noexcept {
    if (value.size() <= 1) { return true; }
    if constexpr (T::IsVectorAtCompileTime) {
      return value.innerStride() == 1;
    } else {
      return (value.cols() == 1 || value.innerStride() == 1) && (value.rows() == 1 || value.outerStride() == value.cols());
    }
  }
};

}  // namespace stepwell
