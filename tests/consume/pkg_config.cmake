# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory ... -P pkg_config.cmake
# Compiles and links with the output of pkg-config for the library installed below PREFIX. Uses --static if the library
# is static.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

find_program(PKG_CONFIG NAMES pkg-config pkgconf)
if(NOT PKG_CONFIG)
  message("skipped: there is no pkg-config")
  return()
endif()
file(GLOB_RECURSE description ${PREFIX}/stepwell.pc)
file(GLOB_RECURSE archive ${PREFIX}/libstepwell.a)
cmake_path(GET description PARENT_PATH place)
cmake_path(SET library NORMALIZE ${place}/..)
set(static)
if(archive)
  set(static --static)
endif()

# ask(VARIABLE OPTION...): sets VARIABLE to the words of pkg-config's output.
function(ask variable)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${place} ${PKG_CONFIG} ${static} ${ARGN} stepwell
    OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(said UNIX_COMMAND "${said}")
  set(${variable} ${said} PARENT_SCOPE)
endfunction()

ask(flags --cflags)
ask(libraries --libs)
ask(version --modversion)
message("stepwell ${version}: ${flags} ${libraries}")
file(STRINGS ${SOURCE}/CMakeLists.txt project_line REGEX "^project\\(stepwell VERSION")
if(NOT project_line MATCHES " ${version} ")
  message(FATAL_ERROR "that is not the version of CMakeLists.txt")
endif()
if(NOT archive AND libraries MATCHES "protobuf|snappy|isal")
  message(FATAL_ERROR "a shared library has found its own needs already")
endif()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${LAUNCHER} ${COMPILER} -std=c++20 -c ${project}/main.cpp -o ${WORK}/main.o ${flags})
run(${LAUNCHER} ${COMPILER} -std=c++20 -c ${project}/other.cpp -o ${WORK}/other.o ${flags})
run(${COMPILER} ${WORK}/main.o ${WORK}/other.o -o ${WORK}/consumer ${libraries} -Wl,-rpath,${library})
run_consumer(${WORK}/consumer)

# Components have files of their own. A library of MPI has none; it is linked by the compiler of MPI.
set(project ${CMAKE_CURRENT_LIST_DIR}/with_eigen)
file(GLOB components RELATIVE ${place} ${place}/stepwell-*.pc)
foreach(component IN LISTS components)
  string(REPLACE ".pc" "" component ${component})
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${place} ${PKG_CONFIG} ${static} --cflags --libs ${component})
endforeach()
if("stepwell-eigen.pc" IN_LIST components)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${place} ${PKG_CONFIG} ${static} --cflags --libs stepwell-eigen
    OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(said UNIX_COMMAND "${said}")
  run(${LAUNCHER} ${COMPILER} -std=c++20 ${project}/main.cpp -o ${WORK}/with_eigen ${said} -Wl,-rpath,${library})
  run_consumer(${WORK}/with_eigen)
endif()
