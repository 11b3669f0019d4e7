// SPDX-License-Identifier: Apache-2.0
//
// The kernels for the instructions that every machine has for which the library is compiled.
#include "stepwell/kernel/detail/simd_kernels.hpp"
#include "stepwell/kernel/detail/simd_tables.hpp"

namespace stepwell::kernel {

#if defined(STEPWELL_SIMD_DISPATCH)
constinit const simd_kernels simd_baseline = kernels_for<xsimd::sse2>::table("sse2");
#elif defined(__aarch64__)
constinit const simd_kernels simd_baseline = kernels_for<xsimd::neon64>::table("neon");
#else
constinit const simd_kernels simd_baseline = kernels_for<xsimd::default_arch>::table(xsimd::default_arch::name());
#endif

}  // namespace stepwell::kernel
