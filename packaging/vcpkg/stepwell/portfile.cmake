# An overlay port: it builds the tree that contains it. A port of a registry begins with vcpkg_from_github instead.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
    FEATURES
        board       STEPWELL_BUILD_BOARD
        eigen       STEPWELL_BUILD_EIGEN
        mpi         STEPWELL_BUILD_MPI
        tensorflow  STEPWELL_BUILD_TENSORFLOW
        tool        STEPWELL_BUILD_TOOL
        torch       STEPWELL_BUILD_TORCH
        xtensor     STEPWELL_BUILD_XTENSOR
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${FEATURE_OPTIONS}
        -DSTEPWELL_BUILD_TESTS=OFF
        -DSTEPWELL_BUILD_EXAMPLES=OFF
)

vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME stepwell CONFIG_PATH lib/cmake/stepwell)
vcpkg_fixup_pkgconfig()
if("tool" IN_LIST FEATURES)
    vcpkg_copy_tools(TOOL_NAMES stepwell AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
