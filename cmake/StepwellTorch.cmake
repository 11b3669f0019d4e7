# SPDX-License-Identifier: Apache-2.0
#
# stepwell_find_torch(PROBLEM): finds LibTorch 1.13 or newer and defines stepwell::libtorch, the target that the adapter links. Sets PROBLEM to
# a text that says what is missing, or to nothing. The build and the installed package both use it, so the package contains no path and no
# target of the LibTorch with which it was built.
#
# A LibTorch for CUDA, such as PyPI's, has a CMake package that stops the configuration if there is no CUDA toolkit. Then only the libraries for
# the CPU are linked; they need two small libraries of CUDA at run time.
function(stepwell_find_torch problem)
  set(${problem} "" PARENT_SCOPE)
  if(TARGET stepwell::libtorch)
    return()
  endif()
  if(NOT DEFINED CMAKE_CXX_STANDARD)
    set(CMAKE_CXX_STANDARD 20)  # the package passes it on to CUDA, and older ones require C++17
  endif()
  # The same search as for the package itself, which cannot be loaded on trial. This file sets only a version.
  set(stepwell_torch_place_DIR "${Torch_DIR}" CACHE PATH "" FORCE)
  find_package(stepwell_torch_place QUIET CONFIG NAMES Torch CONFIGS TorchConfigVersion.cmake HINTS ${Torch_ROOT})
  set(place "${stepwell_torch_place_DIR}")
  unset(stepwell_torch_place_DIR CACHE)
  if(NOT EXISTS "${place}/TorchConfig.cmake")
    set(${problem} "LibTorch was not found. Add its folder to CMAKE_PREFIX_PATH: <site-packages>/torch of `pip install torch`, or the \
folder libtorch of the zip; or install Debian's libtorch-dev" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS "${place}/TorchConfig.cmake" old_abi REGEX "GLIBCXX_USE_CXX11_ABI=0")
  if(old_abi)
    set(${problem} "the LibTorch in ${place} uses the old ABI of libstdc++; take LibTorch 2.7 or newer, or the zip whose name has \
\"cxx11-abi\"" PARENT_SCOPE)
    return()
  endif()
  cmake_path(SET root NORMALIZE "${place}/../../../lib")
  cmake_path(GET root PARENT_PATH root)
  add_library(stepwell::libtorch INTERFACE IMPORTED GLOBAL)
  if(EXISTS "${root}/lib/libtorch_cuda.so")
    find_package(CUDAToolkit QUIET)
    if(NOT CUDAToolkit_FOUND)
      message(STATUS "LibTorch in ${root} is built for CUDA, and no CUDA toolkit was found: linking its libraries for the CPU only. To use "
        "a GPU, install the toolkit. Without CUDA's libraries, install nvidia-cuda-runtime and nvidia-cuda-cupti from PyPI.")
      target_include_directories(stepwell::libtorch SYSTEM INTERFACE "${root}/include" "${root}/include/torch/csrc/api/include")
      target_link_libraries(stepwell::libtorch INTERFACE "${root}/lib/libtorch_cpu.so" "${root}/lib/libc10.so")
      set(Torch_VERSION ${PACKAGE_VERSION} PARENT_SCOPE)
      set(Torch_DIR "${place}" CACHE PATH "The directory of TorchConfig.cmake")
      return()
    endif()
  endif()
  find_package(Torch 1.13 REQUIRED GLOBAL PATHS "${place}" NO_DEFAULT_PATH)  # global, because its targets refer to each other by name
  target_link_libraries(stepwell::libtorch INTERFACE ${TORCH_LIBRARIES})
  set(Torch_VERSION ${Torch_VERSION} PARENT_SCOPE)
endfunction()
