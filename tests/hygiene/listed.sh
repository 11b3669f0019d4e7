#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every source file of the library is listed in src/CMakeLists.txt, every header in src/headers.cmake, and every file of the
# tool and of a test in its folder's CMakeLists.txt: what is not listed is not built, not installed, or never run.
source "$(dirname "$0")/common.sh"

# is_listed PATH LIST: PATH stands in LIST as a whole word. (No grep -q: it hangs up on those before it in the pipe.)
is_listed() { [ -f "$2" ] && grep -v '^[[:space:]]*#' "$2" | tr -s ' ()\t' '\n' | grep -xF -- "$1" >/dev/null; }

for file in $(files src/stepwell -- .cpp .proto); do
  is_listed "${file#src/}" src/CMakeLists.txt || mistake "$file: not listed in src/CMakeLists.txt"
done
for file in $(files src/stepwell -- .hpp); do
  is_listed "${file#src/}" src/headers.cmake || mistake "$file: not listed in src/headers.cmake"
done
for file in $(files src/headers.cmake -- .cmake | xargs -r sed -n 's/^[[:space:]]*\(stepwell\/.*\.hpp\).*/\1/p'); do
  [ -f "src/$file" ] || mistake "src/headers.cmake: lists $file, which is not there"
done
for file in $(files src/tool -- .cpp); do
  is_listed "${file#src/tool/}" src/tool/CMakeLists.txt || mistake "$file: not listed in src/tool/CMakeLists.txt"
done
for folder in unit static compile_fail golden fault fuzz stress bench; do
  for file in $(files "tests/$folder" -- .cpp); do
    is_listed "${file#tests/"$folder"/}" "tests/$folder/CMakeLists.txt" ||
      mistake "$file: not listed in tests/$folder/CMakeLists.txt"
  done
done
finish
