#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the recipes for package managers: each offers each optional part of the library (STEPWELL_BUILD_... in CMakeLists.txt), all have the
# version of the project, and packaging/vcpkg follows the rules of vcpkg's manifests (packaging.cmake).
source "$(dirname "$0")/common.sh"
vcpkg=packaging/vcpkg/stepwell/vcpkg.json
portfile=packaging/vcpkg/stepwell/portfile.cmake
spack=packaging/spack/packages/stepwell/package.py
conan=conan/conanfile.py
version=$(sed -n 's/^project(stepwell VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

for part in $(sed -n 's/^option(STEPWELL_BUILD_\([A-Z_]*\) .*/\1/p' CMakeLists.txt | grep -vE '^(TESTS|EXAMPLES|FUZZERS|BENCHMARKS|MODULE)$'); do
  name=${part,,}
  grep -q "^ *$name *STEPWELL_BUILD_$part\$" "$portfile" 2>/dev/null || mistake "$portfile: has no feature $name for STEPWELL_BUILD_$part"
  grep -q "variant(\"$name\"" "$spack" 2>/dev/null || mistake "$spack: has no variant $name for STEPWELL_BUILD_$part"
  grep -q "STEPWELL_BUILD_$part\"" "$conan" 2>/dev/null || mistake "$conan: does not set STEPWELL_BUILD_$part"
  grep -q "^    \"$name\": {" "$vcpkg" 2>/dev/null || mistake "$vcpkg: has no feature $name for STEPWELL_BUILD_$part"
done
if [ -f "$spack" ]; then
  grep -qF "version(\"$version\"" "$spack" || mistake "$spack: the version is not $version, as in CMakeLists.txt"
  ! command -v python3 >/dev/null || python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$spack" 2>/dev/null ||
    mistake "$spack: not a program of Python"
fi
for formula in packaging/homebrew/*.rb; do
  [ -f "$formula" ] && command -v ruby >/dev/null || continue
  ruby -c "$formula" >/dev/null 2>&1 || mistake "$formula: not a program of Ruby"
done
if [ -f "$vcpkg" ]; then
  while IFS= read -r line; do mistake "$vcpkg: $line"; done < <(cmake -D "MANIFEST=$vcpkg" -D "VERSION=$version" -P "$here/packaging.cmake" 2>&1)
fi
finish
