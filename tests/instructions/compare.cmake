# SPDX-License-Identifier: Apache-2.0
#
# cmake -DVALGRIND=... -DPROGRAM=... -P compare.cmake
# Counts the instructions of a thousand runs with one hook: alone, with six hooks that lack the points of a run (which
# must add no instruction), and with six hooks that have one (which must add some, otherwise the test measures nothing).
function(count_instructions argument result)
  execute_process(COMMAND ${VALGRIND} --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=*measured_runs*
    ${PROGRAM} ${argument} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0 OR NOT output MATCHES "Collected : ([0-9]+)")
    message(FATAL_ERROR "valgrind failed:\n${output}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

count_instructions(alone without)
count_instructions(beside with)
count_instructions(busy more)
message("a thousand runs: ${without} instructions with one hook, ${with} beside six whose points are absent, ${more} beside six that count")
if(without LESS 1000 OR NOT more GREATER with)
  message(FATAL_ERROR "this measures nothing")
endif()
if(with GREATER without)
  message(FATAL_ERROR "an absent hook point costs something")
endif()
