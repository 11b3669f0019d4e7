# SPDX-License-Identifier: Apache-2.0
#
# cmake -DSOURCE=... -DWORK=... -DGENERATOR=... (-DBUILD=... | -DSHARED=ON) -P install_and_consume.cmake
# Installs the library (of the build tree BUILD, or built anew as a shared one), checks what lies there, then builds and
# runs tests/consume/project against nothing but the installed tree.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(prefix ${WORK}/prefix)
set(common -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
file(REMOVE_RECURSE ${prefix} ${WORK}/consumer)
if(SHARED)
  set(BUILD ${WORK}/build)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} ${common} -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DBUILD_SHARED_LIBS=ON
    -DSTEPWELL_BUILD_TESTS=OFF -DSTEPWELL_BUILD_EXAMPLES=OFF -DSTEPWELL_BUILD_BENCHMARKS=OFF
    -DSTEPWELL_BUILD_TOOL=OFF)
  run(${CMAKE_COMMAND} --build ${BUILD} --target stepwell)
endif()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

# What lies there: all public headers, and nothing that was generated or is ours alone.
include(${SOURCE}/src/headers.cmake)
foreach(header IN LISTS STEPWELL_PUBLIC_HEADERS)
  if(NOT EXISTS ${prefix}/include/${header})
    message(FATAL_ERROR "${header} is public, and was not installed")
  endif()
endforeach()
file(GLOB_RECURSE installed RELATIVE ${prefix}/include ${prefix}/include/*)
foreach(header IN LISTS installed)
  if(NOT header IN_LIST STEPWELL_PUBLIC_HEADERS)
    message(FATAL_ERROR "${header} was installed, and is not in the list of public headers")
  endif()
endforeach()

if(EXISTS ${prefix}/bin/stepwell)  # the tool, where it is built
  run(${prefix}/bin/stepwell --version)
endif()

run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consume/project -B ${WORK}/consumer ${common} -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer WORKING_DIRECTORY ${WORK}/consumer)
