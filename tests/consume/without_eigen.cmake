# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory ... -P without_eigen.cmake
# Checks that an installation without the adapter below PREFIX gives a clear error when the adapter is requested.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

file(REMOVE_RECURSE ${WORK})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/with_eigen -B ${WORK} ${common} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${PREFIX} ERROR_VARIABLE said OUTPUT_QUIET RESULT_VARIABLE code)
string(REGEX REPLACE "[ \n]+" " " said "${said}")
if(code EQUAL 0 OR NOT said MATCHES "installed without \"eigen\"")
  message(FATAL_ERROR "a missing adapter is not named: ${said}")
endif()
