// SPDX-License-Identifier: Apache-2.0
//
// The kernels for AVX2 and FMA. It is compiled with flags for these instructions: see simd.hpp before you include anything.
#include "stepwell/kernel/detail/simd_kernels.hpp"
#include "stepwell/kernel/detail/simd_tables.hpp"

namespace stepwell::kernel {

constinit const simd_kernels simd_avx2 = kernels_for<xsimd::fma3<xsimd::avx2>>::table("avx2");

}  // namespace stepwell::kernel
