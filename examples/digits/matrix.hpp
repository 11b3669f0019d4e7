// SPDX-License-Identifier: Apache-2.0
//
// Products of row-major matrices into existing memory. Only matrix.cpp uses BLAS.
#pragma once

#include "xtensor.hpp"

namespace digits {

using matrix = xt::xtensor<float, 2>;
using row = xt::xtensor<float, 1>;

/// Computes c = a b. @pre The shapes match; `c` has the shape of the product.
void multiply(const matrix& a, const matrix& b, matrix& c);
/// Computes c = a^T b. @pre The shapes match; `c` has the shape of the product.
void multiply_transposed_left(const matrix& a, const matrix& b, matrix& c);
/// Computes c = a b^T. @pre The shapes match; `c` has the shape of the product.
void multiply_transposed_right(const matrix& a, const matrix& b, matrix& c);

/// Sets the number of threads that a product may use. The same number gives the same bits; another number may round
/// differently.
void set_matrix_threads(int threads);

}  // namespace digits
