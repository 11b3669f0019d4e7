# SPDX-License-Identifier: Apache-2.0
#
# Build flags of every target of this project, but not of projects that use it.
find_package(Threads REQUIRED)

add_library(stepwell_build_flags INTERFACE)
target_compile_options(stepwell_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion
  $<$<BOOL:${STEPWELL_WERROR}>:-Werror>
  # In a unity build, g++ takes the file that a class stands in for a header.
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
# A project that uses this one may be compiled with -ffast-math. The library needs NaN.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
get_directory_property(options COMPILE_OPTIONS)
if("${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${options}" MATCHES "-Ofast|-ffast-math|-ffinite-math-only")
  target_compile_options(stepwell_build_flags INTERFACE -fno-fast-math)
endif()
if(STEPWELL_SANITIZE)
  target_compile_options(stepwell_build_flags INTERFACE
    -fsanitize=${STEPWELL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(stepwell_build_flags INTERFACE -fsanitize=${STEPWELL_SANITIZE})
endif()
