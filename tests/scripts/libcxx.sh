# SPDX-License-Identifier: Apache-2.0
#
# bash tests/run with clang++ libc++: the tests with LLVM's standard library, which is that of macOS. Debian's protobuf, fmt, Snappy, LevelDB and
# Boost.Program_options are compiled for libstdc++. They are compiled once more here, from Debian's source packages, below build/libcxx. Sourced
# after kinds.sh.

libcxx=$root/build/libcxx
libcxx_sources="protobuf fmtlib snappy leveldb boost1.81"

# libcxx_apt COMMAND...: runs apt-get with source packages of Debian 12, and with its own lists. The system itself is not changed.
libcxx_apt() {
  mkdir -p "$libcxx/apt/state/lists/partial" "$libcxx/apt/cache/archives/partial" "$libcxx/apt/parts"
  echo "deb-src http://deb.debian.org/debian bookworm main" >"$libcxx/apt/sources.list"
  apt-get -q -o "Dir::Etc::SourceList=$libcxx/apt/sources.list" -o "Dir::Etc::SourceParts=$libcxx/apt/parts" -o "Dir::State=$libcxx/apt/state" \
    -o "Dir::Cache=$libcxx/apt/cache" -o APT::Sandbox::User=root "$@"
}

# libcxx_library NAME FOLDER [CMAKE OPTION...]: compiles a library and installs it in $libcxx/prefix.
libcxx_library() {
  local name=$1 folder=$2
  shift 2
  say "building $name with libc++"
  cmake -S "$folder" -B "$libcxx/$name" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_CXX_COMPILER=clang++-19 \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_FLAGS=-stdlib=libc++ -DCMAKE_INSTALL_PREFIX="$libcxx/prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -Wno-dev "$@" >"$libcxx/$name.log" &&
    cmake --build "$libcxx/$name" -j "$jobs" >>"$libcxx/$name.log" && cmake --install "$libcxx/$name" >>"$libcxx/$name.log"
}

# libcxx_program_options FOLDER: compiles Boost.Program_options. Its headers, and its files for CMake, are those of the system.
libcxx_program_options() {
  local machine place
  machine=$(gcc -print-multiarch)
  place=$libcxx/prefix/lib/$machine
  say "building boost_program_options with libc++"
  mkdir -p "$libcxx/program_options" "$place/cmake" "$libcxx/prefix/include"
  (cd "$libcxx/program_options" &&
    clang++-19 -stdlib=libc++ -std=c++17 -O1 -w -fPIC -c "$1"/libs/program_options/src/*.cpp && rm -f winmain.o &&
    ar rcs "$place/libboost_program_options.a" ./*.o) || return 1
  ln -sfn /usr/include/boost "$libcxx/prefix/include/boost"
  cp -r /usr/lib/"$machine"/cmake/{Boost-1.81.0,BoostDetectToolset-1.81.0.cmake,boost_headers-1.81.0,boost_program_options-1.81.0} "$place/cmake"
  rm "$place"/cmake/boost_program_options-1.81.0/*variant-shared.cmake
}

# make_libcxx_root: compiles the libraries. Does nothing if this was done. Fails if a source package cannot be had or does not compile.
make_libcxx_root() {
  local source=$libcxx/source package
  [ ! -f "$libcxx/prefix/complete" ] || return 0
  rm -rf "$libcxx" && mkdir -p "$source"
  libcxx_apt update && command -v dpkg-source >/dev/null || return 1
  # Of Boost, only one folder is unpacked: the whole has 600 MB.
  (cd "$source" && libcxx_apt source --download-only $libcxx_sources && for package in protobuf fmtlib snappy leveldb; do
    dpkg-source --no-check -x "$package"_*.dsc "$package" || exit 1
  done && mkdir boost && tar -xf boost1.81_*.orig.tar.xz -C boost --strip-components=1 --wildcards '*/libs/program_options/src') || return 1
  # Debian's compiler for .proto files is a program and works as it is. Without protobuf's files for CMake, CMake's own module finds it.
  libcxx_library protobuf "$source/protobuf/cmake" -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_BUILD_LIBPROTOC=OFF &&
    rm -rf "$libcxx/prefix/lib/cmake/protobuf" &&
    libcxx_library fmt "$source/fmtlib" -DFMT_TEST=OFF -DFMT_DOC=OFF &&
    libcxx_library snappy "$source/snappy" -DBUILD_SHARED_LIBS=ON -DSNAPPY_BUILD_TESTS=OFF -DSNAPPY_BUILD_BENCHMARKS=OFF &&
    libcxx_library leveldb "$source/leveldb" -DLEVELDB_BUILD_TESTS=OFF -DLEVELDB_BUILD_BENCHMARKS=OFF &&
    libcxx_program_options "$source/boost" && touch "$libcxx/prefix/complete"
}

# run_with_libcxx: the tests, built by clang with libc++. Without the libraries, everything is compiled and nothing is linked.
run_with_libcxx() {
  local tree=with-libcxx found=
  have build examples tool tests clang libcxx
  if make_libcxx_root; then found=1; fi
  configure dev -B "$root/build/$tree" -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_CXX_FLAGS=-stdlib=libc++ -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
    "-DCMAKE_PREFIX_PATH=$libcxx/prefix"
  if [ -n "$found" ]; then
    build "$tree"
    check "$tree" -LE '^(long|ci)$'
  else
    say "compiling only"
    cmake --build "$root/build/$tree" -j "$jobs" -- -k 0 $(ninja -C "$root/build/$tree" -t targets all | sed -n 's/^\(.*\.o\): CXX_COMPILER.*/\1/p')
    say "NOT RUN: the tests with libc++. Debian's source packages of $libcxx_sources could not be had or compiled (see $libcxx). All files compile."
  fi
}
