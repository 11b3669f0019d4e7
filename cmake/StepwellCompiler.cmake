# SPDX-License-Identifier: Apache-2.0
#
# The oldest supported compilers. Older ones are rejected here, because they would fail inside a header with an unclear error.
set(STEPWELL_COMPILERS "g++ 12, clang 17, Apple clang 16, or newer")
set(STEPWELL_OLDEST_GNU 12)
set(STEPWELL_OLDEST_Clang 17)
set(STEPWELL_OLDEST_AppleClang 16)

# stepwell_check_compiler(VARIABLE): sets VARIABLE to the reason why this compiler is not supported, or to an empty string.
function(stepwell_check_compiler variable)
  set(oldest "${STEPWELL_OLDEST_${CMAKE_CXX_COMPILER_ID}}")
  set(reason)
  if(NOT oldest)
    message(STATUS "stepwell was never built with this compiler, ${CMAKE_CXX_COMPILER_ID}; it works with ${STEPWELL_COMPILERS}")
  elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS oldest)
    string(CONCAT reason "stepwell needs ${STEPWELL_COMPILERS}. ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} "
      "${CMAKE_CXX_COMPILER_VERSION}. Choose another compiler with -DCMAKE_CXX_COMPILER=NAME and an empty build directory.")
  endif()
  set(${variable} "${reason}" PARENT_SCOPE)
endfunction()
