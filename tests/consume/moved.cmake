# SPDX-License-Identifier: Apache-2.0
#
# cmake -DBUILD=tree [-DTORCH=directory of TorchConfig.cmake] ... -P moved.cmake
# Installs the build tree BUILD, moves the installation to another prefix, and builds and runs a program that uses it. A LibTorch that has a
# folder of its own is at another path, too. The package names no path, and no target of LibTorch. Then the same with an adapter for LibTorch that
# was built alone, for the installed library.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/moved)
file(GLOB exports ${WORK}/moved/lib*/cmake/stepwell/*Targets*.cmake ${WORK}/moved/lib/*/cmake/stepwell/*Targets*.cmake)
if(NOT exports)
  message(FATAL_ERROR "the installation has no targets")
endif()
foreach(file IN LISTS exports)
  file(STRINGS ${file} wrong REGEX "[\";]/[^\";]|[\";](torch|torch_library|torch_cpu|c10)[\";]")
  if(wrong)
    message(FATAL_ERROR "${file} names a path, or a target of LibTorch: ${wrong}")
  endif()
endforeach()

set(ENV{CMAKE_PREFIX_PATH} ${WORK}/moved)
if(TORCH MATCHES "(.*)/share/cmake/Torch$")
  file(CREATE_LINK ${CMAKE_MATCH_1} ${WORK}/other_torch SYMBOLIC)
  set(ENV{CMAKE_PREFIX_PATH} ${WORK}/moved:${WORK}/other_torch)
endif()
function(consume tree)
  run(${CMAKE_COMMAND} -S ${project} -B ${WORK}/${tree} ${common} -DCMAKE_CXX_COMPILER=${COMPILER})
  run(${CMAKE_COMMAND} --build ${WORK}/${tree})
  run_consumer(${WORK}/${tree}/consumer)
endfunction()
consume(build)

if(TORCH)
  file(GLOB_RECURSE component ${WORK}/moved/stepwell_torch* ${WORK}/moved/libstepwell_torch* ${WORK}/moved/stepwell-torch.pc)
  file(REMOVE ${component} ${WORK}/moved/include/stepwell/torch/torch.hpp)
  run(${CMAKE_COMMAND} -S ${SOURCE}/cmake/torch -B ${WORK}/adapter ${common} -DCMAKE_CXX_COMPILER=${COMPILER})
  run(${CMAKE_COMMAND} --build ${WORK}/adapter)
  run(${CMAKE_COMMAND} --install ${WORK}/adapter)
  consume(with_adapter)
endif()
