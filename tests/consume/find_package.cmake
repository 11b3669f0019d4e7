# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory [-DFLAGS=flags] [-DOTHER_COMPILER=name] ... -P find_package.cmake
# Builds and runs a program of two translation units that uses only the installation below PREFIX.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

if(OTHER_COMPILER)
  find_program(found ${OTHER_COMPILER})
  if(NOT found)
    message("skipped: there is no ${OTHER_COMPILER}")
    return()
  endif()
  set(COMPILER ${found})
endif()
file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -S ${project} -B ${WORK}/build ${common} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${PREFIX}
  -DCMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run_consumer(${WORK}/build/consumer)
