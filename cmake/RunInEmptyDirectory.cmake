# SPDX-License-Identifier: Apache-2.0
#
# cmake -D DIRECTORY=dir -P RunInEmptyDirectory.cmake -- program argument...
# Runs the program in the empty directory `dir`. Removes `dir` before and after. Fails if the program fails.
set(command)
set(seen_dashes FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE 1 ${last})
  if(seen_dashes)
    list(APPEND command "${CMAKE_ARGV${index}}")
  elseif("${CMAKE_ARGV${index}}" STREQUAL "--")
    set(seen_dashes TRUE)
  endif()
endforeach()

file(REMOVE_RECURSE "${DIRECTORY}")
file(MAKE_DIRECTORY "${DIRECTORY}")
execute_process(COMMAND ${command} WORKING_DIRECTORY "${DIRECTORY}" RESULT_VARIABLE outcome)
file(REMOVE_RECURSE "${DIRECTORY}")
if(NOT outcome EQUAL 0)
  message(FATAL_ERROR "the program ended with ${outcome}")
endif()
