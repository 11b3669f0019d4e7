# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DDIRECTORY=dir -P kill_and_resume.cmake
# Checks that a sweep that is killed (SIGKILL) three times and started again prints the same table as an undisturbed
# one, and that a complete sweep does nothing when it is started again.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} whole WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE whole COMMAND_ERROR_IS_FATAL ANY)
foreach(runs IN ITEMS 1 37 120)
  execute_process(COMMAND ${PROGRAM} parts ${runs} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE outcome)
  if(outcome EQUAL 0)
    message(FATAL_ERROR "it was not killed after ${runs} runs")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} parts WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE parts COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PROGRAM} parts WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE again COMMAND_ERROR_IS_FATAL ANY)
message("whole: ${whole}parts: ${parts}")
if(NOT whole STREQUAL parts OR NOT whole STREQUAL again OR NOT whole MATCHES "^200 runs, ")
  message(FATAL_ERROR "they differ")
endif()
file(REMOVE_RECURSE ${DIRECTORY})
