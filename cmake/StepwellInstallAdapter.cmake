# SPDX-License-Identifier: Apache-2.0
#
# stepwell_install_adapter(NAME): installs the target stepwell_NAME as a component of the package, with a file for pkg-config. The component may
# be installed later than the library, by a build of its own.
set(STEPWELL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/stepwell)

# The lines of the files for pkg-config that differ. LibTorch has no such file, and MPI is found by its compilers: mpicxx.
set(STEPWELL_PC_REQUIRES_eigen eigen3)
set(STEPWELL_PC_REQUIRES_xtensor xtensor)
set(STEPWELL_PC_CFLAGS_torch "-I\${torch_prefix}/include -I\${torch_prefix}/include/torch/csrc/api/include")
set(STEPWELL_PC_LIBS_torch "-lstepwell_torch -L\${torch_prefix}/lib -ltorch -ltorch_cpu -lc10")
set(STEPWELL_PC_LIBS_mpi -lstepwell_mpi)
set(STEPWELL_PC_LIBS_tensorflow "-lstepwell_tensorflow -ldl")
set(STEPWELL_PC_LIBS_board -lstepwell_board)

function(stepwell_install_adapter name)
  install(TARGETS stepwell_${name} EXPORT stepwell_${name}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT stepwell_${name} NAMESPACE stepwell:: FILE stepwell_${name}Targets.cmake DESTINATION ${STEPWELL_PACKAGE_DIR})
  if(name STREQUAL torch)  # the version of the library that programs must have, too
    get_property(version GLOBAL PROPERTY STEPWELL_TORCH_VERSION)
    file(WRITE ${PROJECT_BINARY_DIR}/stepwell_torchVersion.cmake "set(stepwell_torch_LIBTORCH_VERSION ${version})\n")
    install(FILES ${PROJECT_BINARY_DIR}/stepwell_torchVersion.cmake DESTINATION ${STEPWELL_PACKAGE_DIR})
  endif()

  set(requires stepwell)
  if(STEPWELL_PC_REQUIRES_${name})
    string(APPEND requires ", ${STEPWELL_PC_REQUIRES_${name}}")
  elseif(name STREQUAL board AND STEPWELL_BOARD_TLS)
    string(APPEND requires ", openssl")
  endif()
  set(stepwell_version ${PROJECT_VERSION})
  set(cflags "${STEPWELL_PC_CFLAGS_${name}}")
  set(libs "${STEPWELL_PC_LIBS_${name}}")
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE libdir)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE prefix)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/stepwell-component.pc.in ${PROJECT_BINARY_DIR}/stepwell-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/stepwell-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
