# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DDIRECTORY=dir -DSTEPS=number "-DKILLS=step;..." -P kill_and_resume.cmake
# Checks that a training of STEPS steps that is killed (SIGKILL) at each of the steps KILLS and resumed ends with the same bits as an
# undisturbed one.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} whole ${STEPS} WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE whole COMMAND_ERROR_IS_FATAL ANY)
foreach(step IN LISTS KILLS)
  execute_process(COMMAND ${PROGRAM} parts ${STEPS} ${step} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE outcome OUTPUT_QUIET ERROR_QUIET)
  if(outcome EQUAL 0)
    message(FATAL_ERROR "it was not killed at step ${step}")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} parts ${STEPS} WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE parts COMMAND_ERROR_IS_FATAL ANY)
message("whole: ${whole}parts: ${parts}")
if(NOT whole STREQUAL parts OR NOT whole MATCHES "^step ${STEPS}, ")
  message(FATAL_ERROR "they differ")
endif()
file(REMOVE_RECURSE ${DIRECTORY})
