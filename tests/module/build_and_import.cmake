# SPDX-License-Identifier: Apache-2.0
#
# cmake -DSOURCE=... -DWORK=... -DGENERATOR=... -P build_and_import.cmake
# Builds the library, the module and the importers with clang 19 or newer, and runs the importers. Configuring with
# another compiler must fail.
cmake_minimum_required(VERSION 3.25)

find_program(CLANG NAMES clang++-21 clang++-20 clang++-19)
if(NOT CLANG)
  message("skipped: no clang++-19 or newer to build the module with; install the package clang-19")
  return()
endif()
set(common -S ${SOURCE} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -DSTEPWELL_BUILD_MODULE=ON -DSTEPWELL_BUILD_EXAMPLES=OFF -DSTEPWELL_BUILD_TOOL=OFF)
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} -B ${WORK}/clang ${common} -DCMAKE_CXX_COMPILER=${CLANG} -DSTEPWELL_ONLY_MODULE_TESTS=ON)
run(${CMAKE_COMMAND} --build ${WORK}/clang)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/clang --output-on-failure --no-tests=error -R "^module_")

execute_process(COMMAND ${CMAKE_COMMAND} -B ${WORK}/refused ${common} -DCMAKE_CXX_COMPILER=g++
  ERROR_VARIABLE said OUTPUT_QUIET RESULT_VARIABLE code)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(code EQUAL 0 OR NOT said MATCHES "the module needs clang 19 or newer, and this is GNU")
  message(FATAL_ERROR "g++ was not refused with a clear message: ${said}")
endif()
