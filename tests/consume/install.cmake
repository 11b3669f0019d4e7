# SPDX-License-Identifier: Apache-2.0
#
# cmake -DBUILD=tree -DPREFIX=directory ... -P install.cmake
# Installs the build tree BUILD below PREFIX, and checks the installed files.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

file(REMOVE_RECURSE ${PREFIX})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})
check_installed(${PREFIX})
