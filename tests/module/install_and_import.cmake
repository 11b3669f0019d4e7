# SPDX-License-Identifier: Apache-2.0
#
# cmake -DSOURCE=... -DWORK=... -DGENERATOR=... -P install_and_import.cmake
# Builds and installs the module as a file set of CMake 3.28 or newer, and imports it in a separate project that finds
# it. If `cmake` is older, the environment variable STEPWELL_NEWER_CMAKE names such a CMake.
cmake_minimum_required(VERSION 3.25)

find_program(CLANG NAMES clang++-21 clang++-20 clang++-19)
find_program(SCANNER NAMES clang-scan-deps-21 clang-scan-deps-20 clang-scan-deps-19)
set(newer ${CMAKE_COMMAND})
if(DEFINED ENV{STEPWELL_NEWER_CMAKE})
  set(newer $ENV{STEPWELL_NEWER_CMAKE})
endif()
execute_process(COMMAND ${newer} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "[0-9]+\\.[0-9]+" version "${version}")
if(version VERSION_LESS 3.28)
  message("skipped: CMake ${version} knows no modules; set STEPWELL_NEWER_CMAKE (bookworm-backports has 3.31)")
  return()
elseif(NOT CLANG OR NOT SCANNER)
  message("skipped: no clang++-19 and clang-scan-deps-19 or newer (packages clang-19 and clang-tools-19)")
  return()
endif()
set(common -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER=${CLANG}
  -DCMAKE_CXX_COMPILER_CLANG_SCAN_DEPS=${SCANNER})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK}/prefix ${WORK}/importer)
run(${newer} -S ${SOURCE} -B ${WORK}/build ${common} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DSTEPWELL_BUILD_MODULE=ON
  -DSTEPWELL_BUILD_TESTS=OFF -DSTEPWELL_BUILD_EXAMPLES=OFF -DSTEPWELL_BUILD_TOOL=OFF)
run(${newer} --build ${WORK}/build)
run(${newer} --install ${WORK}/build --prefix ${WORK}/prefix)
run(${newer} -S ${CMAKE_CURRENT_LIST_DIR}/importer -B ${WORK}/importer ${common} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${newer} --build ${WORK}/importer)
run(${WORK}/importer/importer)
