# SPDX-License-Identifier: Apache-2.0
#
# cmake -DCOMPILER=... -DINCLUDES=... -DDEFINITIONS=... -DSOURCE=... [-DPRECOMPILED=HEADER] -P expect_refusal.cmake
# With -DPRECOMPILE=HEADER instead of -DSOURCE, compiles HEADER to HEADER.gch, which later calls with -DPRECOMPILED=HEADER use.
#
# Passes if SOURCE does not compile and the compiler's output contains the text of SOURCE's first line, and of the line that begins with
# "// names: ", if there is one. If there is a line "// at most: N bytes", the output, with the lines of source that the compiler shows, has
# at most N bytes.

function(fail text)
  message("${text}")  # printed separately, because FATAL_ERROR breaks long lines
  message(FATAL_ERROR "not as promised")
endfunction()

set(flags -std=c++20)
foreach(directory IN LISTS INCLUDES)
  list(APPEND flags -I${directory})
endforeach()
foreach(definition IN LISTS DEFINITIONS)
  list(APPEND flags -D${definition})
endforeach()

if(PRECOMPILE)
  execute_process(COMMAND ${COMPILER} ${flags} -x c++-header ${PRECOMPILE} -o ${PRECOMPILE}.gch COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()

file(READ ${SOURCE} text LIMIT 1000)
string(REGEX MATCH "^[^\n]*" first_line "${text}")  # file(STRINGS) would change a semicolon
if(NOT first_line MATCHES "^// expect: (.+)$")
  fail("${SOURCE}: its first line must be \"// expect: TEXT\"")
endif()
set(promised "${CMAKE_MATCH_1}")
set(named "")
if(text MATCHES "\n// names: ([^\n]+)\n")
  set(named "${CMAKE_MATCH_1}")
endif()

set(limit "")
if(text MATCHES "\n// at most: ([0-9]+) bytes\n")
  set(limit "${CMAKE_MATCH_1}")
endif()

list(APPEND flags -fsyntax-only -fdiagnostics-color=never -fmessage-length=0)
if(NOT limit AND COMPILER MATCHES "clang")
  list(APPEND flags -fno-caret-diagnostics)
elseif(NOT limit)
  list(APPEND flags -fno-diagnostics-show-caret)
endif()
if(PRECOMPILED)
  list(APPEND flags -include ${PRECOMPILED})
endif()
execute_process(COMMAND ${COMPILER} ${flags} ${SOURCE} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output
  COMMAND_ECHO NONE)

if(code EQUAL 0)
  fail("${SOURCE} compiles, and must not")
endif()
foreach(words IN ITEMS "${promised}" "${named}")
  string(FIND "${output}" "${words}" place)
  if(place EQUAL -1)
    message("${output}")
    fail("${SOURCE} is refused, but not with \"${words}\"")
  endif()
endforeach()
string(LENGTH "${output}" bytes)
if(limit AND bytes GREATER limit)
  message("${output}")
  fail("${SOURCE} is refused with ${bytes} bytes of messages")
endif()
