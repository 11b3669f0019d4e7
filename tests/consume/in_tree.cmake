# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory ... -P in_tree.cmake
# Builds the shared library as a part of the consumer's tree: by add_subdirectory, then by FetchContent, which reuses
# the built library. By default this is a unity build. Then installs the tree below PREFIX.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(tree ${WORK}/build)
foreach(way IN ITEMS add_subdirectory FetchContent)
  run(${CMAKE_COMMAND} -S ${project} -B ${tree} ${common} -DCMAKE_CXX_COMPILER=${COMPILER} -DCONSUMER_TAKES_IT_BY=${way}
    -DSTEPWELL_SOURCE=${SOURCE} -DFETCHCONTENT_FULLY_DISCONNECTED=ON -DBUILD_SHARED_LIBS=ON -DSTEPWELL_INSTALL=ON)
  run(${CMAKE_COMMAND} --build ${tree})
  run_consumer(${tree}/consumer)
endforeach()

# The consumer's tree contains only the library. Tests, tool and examples are built only on request.
run(${CMAKE_CTEST_COMMAND} --test-dir ${tree} --no-tests=ignore --quiet)
foreach(ours IN ITEMS src/tool tests examples)
  if(EXISTS ${tree}/_deps/stepwell-build/${ours})
    message(FATAL_ERROR "a part of another project brings ${ours} with it")
  endif()
endforeach()

# The flags and the properties of the project stay its own, and only the library is compiled in fewer, larger files.
file(STRINGS ${tree}/own_settings.txt settings)
if(NOT settings STREQUAL "flags= unity= standard= scan= options= definitions=")
  message(FATAL_ERROR "a part of another project changes its settings: ${settings}")
endif()
file(GLOB unity_files ${tree}/_deps/stepwell-build/src/CMakeFiles/stepwell.dir/Unity/*.cxx)
if(NOT unity_files)
  message(FATAL_ERROR "a part of another project is no unity build")
endif()

file(REMOVE_RECURSE ${PREFIX})
run(${CMAKE_COMMAND} --install ${tree} --prefix ${PREFIX})
check_installed(${PREFIX})
