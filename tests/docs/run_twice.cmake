# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DARGUMENT=... -DPRINTED=file -DDIRECTORY=dir -P run_twice.cmake
# Runs the program with its argument twice in `dir`, which is empty at the start. Both runs must succeed, print the same output and leave
# identical checkpoint files: a run that has reached its end makes no further step (decision D-6). If the file `PRINTED`
# exists, the output must contain its lines.
cmake_minimum_required(VERSION 3.25)

# run(VARIABLE): sets VARIABLE to the output of the program and the checksums of its checkpoints.
function(run variable)
  execute_process(COMMAND ${PROGRAM} ${ARGUMENT} WORKING_DIRECTORY ${DIRECTORY} OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE files ${DIRECTORY}/*.index ${DIRECTORY}/*.data-*)
  foreach(file IN LISTS files)
    file(SHA256 ${file} checksum)
    string(APPEND said "${checksum} ${file}\n")
  endforeach()
  message("${said}")
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
run(first)
run(second)
file(REMOVE_RECURSE ${DIRECTORY})
if(NOT first STREQUAL second)
  message(FATAL_ERROR "the second run ended otherwise than the first")
endif()
if(EXISTS ${PRINTED})
  file(READ ${PRINTED} printed)
  string(FIND "\n${first}" "\n${printed}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "the page shows other output:\n${printed}")
  endif()
endif()
