# SPDX-License-Identifier: Apache-2.0
#
# Finds protobuf. Protobuf 22 and later depend on Abseil, and only protobuf's own CMake package declares that. Debian's protobuf
# 3.21 has no such package; CMake's module finds it.
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf 3.21 REQUIRED)
endif()
