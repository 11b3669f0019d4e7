// SPDX-License-Identifier: Apache-2.0
//
// The kernels for AVX-512 (F, CD, DQ and BW). It is compiled with flags for these instructions: see simd.hpp before you include anything.
#include "stepwell/kernel/detail/simd_kernels.hpp"
#include "stepwell/kernel/detail/simd_tables.hpp"

namespace stepwell::kernel {

constinit const simd_kernels simd_avx512 = kernels_for<xsimd::avx512bw>::table("avx512");

}  // namespace stepwell::kernel
