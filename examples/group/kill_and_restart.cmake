# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DLAUNCHER=... -DDIRECTORY=dir -P kill_and_restart.cmake
# Checks that a job of which one process is killed (SIGKILL) ends with a failure, and that the same command then continues it, with the bits
# of an undisturbed training of one process.
cmake_minimum_required(VERSION 3.25)

set(killed_rank 0)
if(LAUNCHER)
  set(killed_rank 2)
endif()
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} whole WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE whole COMMAND_ERROR_IS_FATAL ANY)
set(job ${LAUNCHER} ${PROGRAM} parts 200 ${killed_rank} 120)
execute_process(COMMAND ${job} WORKING_DIRECTORY ${DIRECTORY} RESULT_VARIABLE outcome OUTPUT_QUIET)
if(outcome EQUAL 0 OR NOT EXISTS ${DIRECTORY}/parts.killed)
  message(FATAL_ERROR "no process was killed")
endif()
execute_process(COMMAND ${job} WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE parts COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "trained 200 steps, bits [0-9a-f]+" expected "${whole}")
string(REGEX MATCH "trained 200 steps, bits [0-9a-f]+" found "${parts}")
message("whole: ${expected}, parts: ${found}")
if(expected STREQUAL "" OR NOT found STREQUAL expected)
  message(FATAL_ERROR "they differ")
endif()
file(REMOVE_RECURSE ${DIRECTORY})
