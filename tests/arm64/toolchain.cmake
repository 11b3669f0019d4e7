# SPDX-License-Identifier: Apache-2.0
#
# Compiles for arm64 Linux with Debian's g++, and runs the programs with QEMU. STEPWELL_ARM64_ROOT is a directory with the arm64 packages of
# the dependencies; `bash tests/run arm64` makes one in build/arm64-root.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(STEPWELL_ARM64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/arm64-root CACHE PATH "Directory with the arm64 packages")
cmake_path(NORMAL_PATH STEPWELL_ARM64_ROOT)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STEPWELL_ARM64_ROOT)
set(CMAKE_SYSROOT ${STEPWELL_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)  # protoc runs on this machine
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
find_program(STEPWELL_QEMU qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${STEPWELL_QEMU} -L ${STEPWELL_ARM64_ROOT})
