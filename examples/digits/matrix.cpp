// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

#include <xtensor-blas/xblas.hpp>

extern "C" void openblas_set_num_threads(int threads);  // missing in the cblas.h of xtensor-blas

namespace digits {

void multiply(const matrix& a, const matrix& b, matrix& c) { xt::blas::gemm(a, b, c); }

void multiply_transposed_left(const matrix& a, const matrix& b, matrix& c) { xt::blas::gemm(a, b, c, true, false); }

void multiply_transposed_right(const matrix& a, const matrix& b, matrix& c) { xt::blas::gemm(a, b, c, false, true); }

void set_matrix_threads(int threads) { openblas_set_num_threads(threads); }

}  // namespace digits
