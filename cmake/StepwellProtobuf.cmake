# SPDX-License-Identifier: Apache-2.0
#
# Finds protobuf. Protobuf 22 and later need Abseil, which only protobuf's own CMake package names; Debian's 3.21 has no such
# package and is found by CMake's module.
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf 3.21 REQUIRED)
endif()
