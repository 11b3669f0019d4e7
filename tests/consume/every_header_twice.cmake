# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory ... -P every_header_twice.cmake
# Links two translation units that include every public header into one program. One of them is compiled without
# run-time type information.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
include(${SOURCE}/src/headers.cmake)

list(TRANSFORM STEPWELL_PUBLIC_HEADERS PREPEND "#include <" OUTPUT_VARIABLE includes)
list(TRANSFORM includes APPEND ">\n")
list(JOIN includes "" includes)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/one.cpp "${includes}int other();\nint main() { return other(); }\n")
file(WRITE ${WORK}/other.cpp "${includes}int other() { return 0; }\n")
run(${LAUNCHER} ${COMPILER} -std=c++20 -I${PREFIX}/include -c ${WORK}/one.cpp -o ${WORK}/one.o)
run(${LAUNCHER} ${COMPILER} -std=c++20 -I${PREFIX}/include -c ${WORK}/other.cpp -o ${WORK}/other.o -fno-rtti)
file(GLOB_RECURSE library ${PREFIX}/libstepwell.*)
run(${COMPILER} ${WORK}/one.o ${WORK}/other.o -o ${WORK}/program ${library} -lprotobuf -lfmt -lsnappy -lz -lisal)
run(${WORK}/program)
