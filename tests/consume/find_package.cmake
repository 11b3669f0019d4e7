# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory [-DFLAGS=flags] [-DOTHER_COMPILER=name] ... -P find_package.cmake
# A program of two translation units against what is installed below PREFIX, and nothing else.
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
