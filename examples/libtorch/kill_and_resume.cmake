# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DDIRECTORY=dir -P kill_and_resume.cmake
# Checks that a training that is killed (SIGKILL) 20 times and resumed ends with the same bits as an undisturbed one.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} whole 60 WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE whole COMMAND_ERROR_IS_FATAL ANY)
foreach(step RANGE 2 59 3)
  execute_process(COMMAND ${PROGRAM} parts 60 ${step} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE outcome OUTPUT_QUIET ERROR_QUIET)
  if(outcome EQUAL 0)
    message(FATAL_ERROR "it was not killed at step ${step}")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} parts 60 WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE parts COMMAND_ERROR_IS_FATAL ANY)
message("whole: ${whole}parts: ${parts}")
if(NOT whole STREQUAL parts OR NOT whole MATCHES "^step 60, ")
  message(FATAL_ERROR "they differ")
endif()
file(REMOVE_RECURSE ${DIRECTORY})
