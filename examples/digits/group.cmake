# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DLAUNCHER=... -DDIRECTORY=dir -P group.cmake
# Checks that two processes train the digits together, and that the same command continues their training.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${PROGRAM} --run-dir alone --epochs 1 WORKING_DIRECTORY ${DIRECTORY} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)  # makes the data
foreach(steps IN ITEMS 100 160)
  execute_process(COMMAND ${LAUNCHER} ${PROGRAM} --group --run-dir both --data alone/data --steps ${steps} --save-steps 50
    WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
  if(NOT printed MATCHES "final step=${steps} .*fingerprint=")
    message(FATAL_ERROR "it has not trained ${steps} steps: ${printed}")
  endif()
endforeach()
file(REMOVE_RECURSE ${DIRECTORY})
