# SPDX-License-Identifier: Apache-2.0
#
# Installation of the library, the public headers, the package for find_package(stepwell), and the file for pkg-config.
include(CMakePackageConfigHelpers)
include(StepwellInstallAdapter)

if(BUILD_SHARED_LIBS)
  set(BUILD_SHARED_LIBS ON)
else()
  set(BUILD_SHARED_LIBS OFF)
endif()

install(TARGETS stepwell EXPORT stepwell
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT stepwell NAMESPACE stepwell:: FILE stepwellTargets.cmake DESTINATION ${STEPWELL_PACKAGE_DIR})

foreach(adapter IN ITEMS eigen xtensor torch mpi tensorflow board)
  if(TARGET stepwell_${adapter})
    stepwell_install_adapter(${adapter})
  endif()
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/stepwellConfig.cmake.in
  ${PROJECT_BINARY_DIR}/stepwellConfig.cmake INSTALL_DESTINATION ${STEPWELL_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stepwellConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stepwellConfig.cmake ${PROJECT_BINARY_DIR}/stepwellConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/StepwellCompiler.cmake ${PROJECT_SOURCE_DIR}/cmake/StepwellProtobuf.cmake
  ${PROJECT_SOURCE_DIR}/cmake/StepwellTorch.cmake ${PROJECT_SOURCE_DIR}/cmake/FindISAL.cmake DESTINATION ${STEPWELL_PACKAGE_DIR})

if(TARGET stepwell_board)  # the page of the board contains uPlot
  install(FILES ${PROJECT_SOURCE_DIR}/src/stepwell/board/page/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.uPlot)
endif()

# The examples, to read and to compile.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.cpp" PATTERN "*.hpp" PATTERN "*.py")

# The file for pkg-config. Its paths are relative to its own location, so that the installed tree can be moved. A static library
# lists its dependencies for `pkg-config --static`. A shared library is already linked to them.
set(STEPWELL_PC_CFLAGS -pthread)
if(NOT STEPWELL_HAS_STOP_TOKEN)
  string(APPEND STEPWELL_PC_CFLAGS " -D_LIBCPP_ENABLE_EXPERIMENTAL")
endif()
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(APPEND STEPWELL_PC_CFLAGS " -I${directory}")
  endif()
endforeach()
set(STEPWELL_PC_REQUIRES_PRIVATE)
if(NOT BUILD_SHARED_LIBS)
  set(STEPWELL_PC_REQUIRES_PRIVATE "protobuf, fmt, snappy, zlib, libisal")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE STEPWELL_PC_LIBDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE STEPWELL_PC_INCLUDEDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE STEPWELL_PC_PREFIX)
configure_file(${PROJECT_SOURCE_DIR}/cmake/stepwell.pc.in ${PROJECT_BINARY_DIR}/stepwell.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/stepwell.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
