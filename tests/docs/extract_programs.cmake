# SPDX-License-Identifier: Apache-2.0

# extract_programs(PAGE ROOT DIRECTORY VARIABLE): writes the n-th program of PAGE, a Markdown file below ROOT, to
# DIRECTORY/PAGE_n.cpp and sets VARIABLE to these files. If the page shows the output of the program, in a block after the
# line "<!-- printed -->", writes it to DIRECTORY/PAGE_n.txt. CMake configures again when the page changes.
function(extract_programs page root directory variable)
  cmake_path(RELATIVE_PATH page BASE_DIRECTORY ${root} OUTPUT_VARIABLE shown)
  string(REGEX REPLACE "\\.md$" "" name ${shown})
  string(MAKE_C_IDENTIFIER ${name} name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})

  file(READ ${page} rest)
  set(fence "\n```")
  set(found)
  set(count 0)
  string(FIND "${rest}" "${fence}cpp\n" begin)
  while(NOT begin EQUAL -1)
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(SUBSTRING "${rest}" 7 -1 rest)  # past the fence and its line break
    string(FIND "${rest}" "${fence}" end)
    string(SUBSTRING "${rest}" 0 ${end} code)
    string(SUBSTRING "${rest}" ${end} -1 rest)
    string(SUBSTRING "${rest}" 4 -1 rest)
    if(code MATCHES "(^|\n)int main\\(" AND NOT code MATCHES "\nimport ")  # tests/module builds programs that import
      math(EXPR count "${count} + 1")
      file(CONFIGURE OUTPUT ${directory}/${name}_${count}.cpp CONTENT "// The program of ${shown}.\n@code@\n" @ONLY)
      list(APPEND found ${directory}/${name}_${count}.cpp)
      string(FIND "${rest}" "${fence}cpp\n" begin)
      string(SUBSTRING "${rest}" 0 ${begin} text)
      file(REMOVE ${directory}/${name}_${count}.txt)
      if(text MATCHES "\n<!-- printed -->\n```\n([^`]*\n)```")
        file(WRITE ${directory}/${name}_${count}.txt "${CMAKE_MATCH_1}")
      endif()
    endif()
    string(FIND "${rest}" "${fence}cpp\n" begin)
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# join_programs(FILE program...): writes FILE, one program that holds all of these. Its first argument is the name of the program to run.
# Each stands in a namespace of its own, behind the includes of all. A program that is joined ends with its `main`.
function(join_programs file)
  set(includes)
  set(bodies)
  set(calls)
  foreach(program IN LISTS ARGN)
    cmake_path(GET program STEM name)
    file(READ ${program} code)
    string(REGEX MATCHALL "#include [^\n]*" found "${code}")
    list(APPEND includes ${found})
    string(REGEX REPLACE "#include [^\n]*" "" code "${code}")
    if(NOT code MATCHES "\nint main\\(\\) {\n")
      message(FATAL_ERROR "${program}: the programs of the pages begin their main with `int main() {`")
    endif()
    string(REPLACE "\nint main() {\n" "\nint run() {\n" code "${code}")
    string(REGEX REPLACE "}\n*$" "  return 0;\n}" code "${code}")  # only `main` itself returns 0 without this line
    string(APPEND bodies "\nnamespace ${name} {\n${code}\n}\n")
    string(APPEND calls "  if (name == \"${name}\") { return ${name}::run(); }\n")
  endforeach()
  list(APPEND includes "#include <string_view>")
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
    "@includes@\n@bodies@\nint main(int, char** arguments) {\n  const std::string_view name = arguments[1];\n@calls@  return 1;\n}\n")
endfunction()
