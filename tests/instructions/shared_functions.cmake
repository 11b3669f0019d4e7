# SPDX-License-Identifier: Apache-2.0
#
# Fails if one of OBJECTS, which have instructions of newer processors, defines a function or object that another source may define, too: the
# linker could select it for all of them. NM is the program of this name. See src/stepwell/kernel/detail/simd.hpp.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --demangle --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
  foreach(symbol IN LISTS symbols)
    # Lower-case letters are local symbols. DW.ref. is the same pointer in all sources.
    if(symbol MATCHES " ([A-Zuvw]) (.*)" AND NOT CMAKE_MATCH_2 MATCHES "^(stepwell::kernel::simd_(avx2|avx512)|DW[.]ref[.].*)$")
      message(SEND_ERROR "${object} defines ${CMAKE_MATCH_2}")
    endif()
  endforeach()
endforeach()
