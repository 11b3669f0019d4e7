# SPDX-License-Identifier: Apache-2.0
#
# Functions of the scripts in this folder. The scripts are called with -DSOURCE (this tree), -DWORK (a separate
# directory), -DCOMPILER, -DGENERATOR and -DLAUNCHER.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(NOT PROJECT)
  set(PROJECT project)
endif()
set(project ${CMAKE_CURRENT_LIST_DIR}/${PROJECT})
set(common -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})

# run_consumer(PROGRAM): runs the program in a new, empty directory.
function(run_consumer program)
  file(REMOVE_RECURSE ${WORK}/run)
  file(MAKE_DIRECTORY ${WORK}/run)
  run(${program} WORKING_DIRECTORY ${WORK}/run)
endfunction()

# check_installed(PREFIX): checks that exactly the public headers are installed (no generated or private ones), and that
# the tool runs.
function(check_installed prefix)
  include(${SOURCE}/src/headers.cmake)
  foreach(adapter IN LISTS STEPWELL_ADAPTERS)
    string(TOUPPER ${adapter} upper)
    if(EXISTS ${prefix}/include/stepwell/${adapter})
      list(APPEND STEPWELL_PUBLIC_HEADERS ${STEPWELL_${upper}_HEADERS})
    endif()
  endforeach()
  list(APPEND STEPWELL_PUBLIC_HEADERS ${STEPWELL_DETAIL_HEADERS})
  foreach(header IN LISTS STEPWELL_PUBLIC_HEADERS)
    if(NOT EXISTS ${prefix}/include/${header})
      message(FATAL_ERROR "${header} is public, and was not installed")
    endif()
  endforeach()
  file(GLOB_RECURSE installed RELATIVE ${prefix}/include ${prefix}/include/*)
  foreach(header IN LISTS installed)
    if(NOT header IN_LIST STEPWELL_PUBLIC_HEADERS)
      message(FATAL_ERROR "${header} was installed, and is not in the list of public headers")
    endif()
  endforeach()
  if(NOT EXISTS ${prefix}/share/doc/stepwell/examples/01_first_loop.cpp)
    message(FATAL_ERROR "the examples were not installed")
  endif()
  if(EXISTS ${prefix}/bin/stepwell)
    run(${prefix}/bin/stepwell --version)
    if(NOT EXISTS ${prefix}/share/man/man1/stepwell.1)
      message(FATAL_ERROR "the manual page of the tool was not installed")
    endif()
  endif()
endfunction()
