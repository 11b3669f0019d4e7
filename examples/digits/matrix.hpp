// SPDX-License-Identifier: Apache-2.0
//
// Products of row-major matrices, into memory that is already there. The only file that knows about BLAS.
#pragma once

#include "xtensor.hpp"

namespace digits {

using matrix = xt::xtensor<float, 2>;
using row = xt::xtensor<float, 1>;

/// c = a b. @pre The shapes fit; `c` has the shape of the product.
void multiply(const matrix& a, const matrix& b, matrix& c);
/// c = a^T b.
void multiply_transposed_left(const matrix& a, const matrix& b, matrix& c);
/// c = a b^T.
void multiply_transposed_right(const matrix& a, const matrix& b, matrix& c);

/// How many threads a product may use. The same count gives the same bits; another may round otherwise.
void set_matrix_threads(int threads);

}  // namespace digits
