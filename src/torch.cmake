# SPDX-License-Identifier: Apache-2.0
#
# The target stepwell::torch, the adapter for LibTorch. Included by the build of the library, and by cmake/torch, which builds the adapter for an
# installed library.
include(StepwellTorch)
stepwell_find_torch(problem)
if(problem)
  message(FATAL_ERROR "STEPWELL_BUILD_TORCH: ${problem}")
endif()
set_property(GLOBAL PROPERTY STEPWELL_TORCH_VERSION ${Torch_VERSION})
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND Torch_VERSION VERSION_LESS 2)
  message(FATAL_ERROR "STEPWELL_BUILD_TORCH: the headers of LibTorch ${Torch_VERSION} do not compile as C++20 with Clang. Configure with "
    "-DCMAKE_CXX_COMPILER=g++, or leave the adapter off.")
endif()
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/stepwell/torch/*.cpp)
add_library(stepwell_torch ${sources})
add_library(stepwell::torch ALIAS stepwell_torch)
list(TRANSFORM STEPWELL_TORCH_HEADERS PREPEND ${CMAKE_CURRENT_LIST_DIR}/ OUTPUT_VARIABLE headers)
target_sources(stepwell_torch PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_CURRENT_LIST_DIR} FILES ${headers})
target_link_libraries(stepwell_torch PUBLIC stepwell::stepwell stepwell::libtorch PRIVATE $<BUILD_INTERFACE:stepwell_build_flags>)
# The header of ProcessGroupGloo includes headers of Gloo, which packages of LibTorch do not contain. detail/gloo.hpp declares the names that it
# uses; these headers are empty.
set(gloo_headers ${PROJECT_BINARY_DIR}/gloo_headers)
foreach(header algorithm common/error context rendezvous/store transport/device)
  file(WRITE ${gloo_headers}/gloo/${header}.h "")
endforeach()
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/stepwell/torch/c10d_engine.cpp PROPERTIES
  INCLUDE_DIRECTORIES ${gloo_headers} COMPILE_DEFINITIONS USE_C10D_GLOO SKIP_UNITY_BUILD_INCLUSION ON)
# Sums on GPUs, if LibTorch is built for CUDA and the headers of NCCL are there. This part has been compiled, but never run.
find_path(STEPWELL_NCCL_INCLUDE_DIR nccl.h DOC "The directory of nccl.h, for sums of groups on GPUs")
if(STEPWELL_NCCL_INCLUDE_DIR AND TARGET torch_cuda AND Torch_VERSION VERSION_GREATER_EQUAL 2)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/stepwell/torch/c10d_engine.cpp APPEND PROPERTY INCLUDE_DIRECTORIES ${STEPWELL_NCCL_INCLUDE_DIR})
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/stepwell/torch/c10d_engine.cpp APPEND PROPERTY COMPILE_DEFINITIONS STEPWELL_WITH_NCCL USE_C10D_NCCL)
endif()
set_target_properties(stepwell_torch PROPERTIES EXPORT_NAME torch CXX_EXTENSIONS OFF VERSION ${PROJECT_VERSION} SOVERSION 0.1
  VERIFY_INTERFACE_HEADER_SETS ON)
