# SPDX-License-Identifier: Apache-2.0
#
# Looks for protobuf, and sets Protobuf_FOUND. Protobuf 22 and later depend on Abseil, and only protobuf's own CMake package declares that.
# Debian's protobuf 3.21 has no such package; CMake's module finds it. Prefixes of LibTorch in CMAKE_PREFIX_PATH are ignored: PyPI's package and
# the zip contain a compiler and headers of protobuf, but no library.
set(stepwell_ignored_prefixes "${CMAKE_IGNORE_PREFIX_PATH}")
file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" stepwell_prefixes)
foreach(stepwell_prefix IN LISTS CMAKE_PREFIX_PATH stepwell_prefixes)
  if(EXISTS "${stepwell_prefix}/share/cmake/Torch/TorchConfig.cmake")
    list(APPEND CMAKE_IGNORE_PREFIX_PATH "${stepwell_prefix}")
  endif()
endforeach()
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf 3.21 QUIET)
endif()
set(CMAKE_IGNORE_PREFIX_PATH "${stepwell_ignored_prefixes}")
