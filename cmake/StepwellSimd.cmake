# SPDX-License-Identifier: Apache-2.0
#
# Flags for the arithmetic of the library, and on x86-64 one source for each set of vector instructions: see
# src/stepwell/kernel/detail/simd.hpp.

set(is_gnu_or_clang OFF)
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT MSVC)
  set(is_gnu_or_clang ON)
endif()
include(CheckCXXSourceCompiles)
# The instructions of the compiler flags, not of this machine: the library may be cross-compiled.
check_cxx_source_compiles("#if !defined(__x86_64__)\n#error\n#endif\nint main() {}" STEPWELL_IS_X86_64)
check_cxx_source_compiles("#if !defined(__x86_64__) || defined(__FMA__)\n#error\n#endif\nint main() {}" STEPWELL_IS_X86_64_WITHOUT_FMA)

# A product that is fused with an addition has other bits. Without the instruction, no product is.
set(no_fused_products -ffp-contract=off)
if(is_gnu_or_clang AND NOT STEPWELL_IS_X86_64_WITHOUT_FMA)
  target_compile_options(stepwell PRIVATE ${no_fused_products})
endif()

# stepwell_simd_source(FILE FLAG...): compiles a source of the library with flags of its own. It is always optimised, so that the functions
# of xsimd are inlined, and no other source can use one that has these flags. g++ warns about its own headers.
function(stepwell_simd_source file)
  set_source_files_properties(${file} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(is_gnu_or_clang)
    set_source_files_properties(${file} PROPERTIES
      COMPILE_OPTIONS "-O3;${no_fused_products};$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>;${ARGN}")
  endif()
endfunction()

# STEPWELL_HAS_SIMD_SETS: whether there is more than one set. An object for several architectures cannot have flags of one of them.
set(STEPWELL_HAS_SIMD_SETS OFF)
list(LENGTH CMAKE_OSX_ARCHITECTURES architectures)
if(STEPWELL_SIMD_DISPATCH AND is_gnu_or_clang AND STEPWELL_IS_X86_64 AND architectures LESS 2)
  set(STEPWELL_HAS_SIMD_SETS ON)
endif()
