# SPDX-License-Identifier: Apache-2.0
#
# The headers of the library, found by their places. Public headers lie directly in their folder, or in the folder of a format: users include
# them. Headers in detail/ belong to us; those that a public header includes, directly or through another one, are installed with it. Each
# installed header must compile alone.
#
# Sets STEPWELL_PUBLIC_HEADERS and STEPWELL_DETAIL_HEADERS of the core, and STEPWELL_<ADAPTER>_HEADERS. An adapter belongs to a target of its
# own, and includes the library that it is for.
set(STEPWELL_ADAPTERS board eigen mpi tensorflow torch xtensor)

# stepwell_included_details(RESULT HEADER...): RESULT is the list of the headers in detail/ that these headers include.
function(stepwell_included_details result)
  set(details)
  set(pending ${ARGN})
  while(pending)
    list(POP_FRONT pending header)
    file(STRINGS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${header} includes REGEX "^#include \"stepwell/.*\"")
    list(TRANSFORM includes REPLACE "^#include \"(.*)\".*" "\\1")
    list(FILTER includes INCLUDE REGEX "/detail/")
    list(REMOVE_ITEM includes "" ${details})
    list(APPEND details ${includes})
    list(APPEND pending ${includes})
  endwhile()
  set(${result} ${details} PARENT_SCOPE)
endfunction()

set(when_files_change CONFIGURE_DEPENDS)
if(CMAKE_SCRIPT_MODE_FILE)
  set(when_files_change)  # a script is not configured again
endif()
file(GLOB_RECURSE STEPWELL_PUBLIC_HEADERS ${when_files_change} RELATIVE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/stepwell/*.hpp)
list(FILTER STEPWELL_PUBLIC_HEADERS EXCLUDE REGEX "/detail/")
stepwell_included_details(STEPWELL_DETAIL_HEADERS ${STEPWELL_PUBLIC_HEADERS})
foreach(adapter IN LISTS STEPWELL_ADAPTERS)
  string(TOUPPER ${adapter} upper)
  set(STEPWELL_${upper}_HEADERS ${STEPWELL_PUBLIC_HEADERS} ${STEPWELL_DETAIL_HEADERS})
  list(FILTER STEPWELL_${upper}_HEADERS INCLUDE REGEX "^stepwell/${adapter}/")
  list(FILTER STEPWELL_PUBLIC_HEADERS EXCLUDE REGEX "^stepwell/${adapter}/")
  list(FILTER STEPWELL_DETAIL_HEADERS EXCLUDE REGEX "^stepwell/${adapter}/")
endforeach()
