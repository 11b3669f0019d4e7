// SPDX-License-Identifier: Apache-2.0
//
// The tables of all sets of instructions.
#pragma once

#include "stepwell/kernel/detail/simd.hpp"

namespace stepwell::kernel {

extern const simd_kernels simd_baseline;
// These are defined if STEPWELL_SIMD_DISPATCH is.
extern const simd_kernels simd_avx2;
extern const simd_kernels simd_avx512;

}  // namespace stepwell::kernel
