#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every .cpp file of the tool and of the tests is listed in the CMakeLists.txt of its folder. An unlisted file is not built, or not
# run. (The sources and headers of the library are found by their places.)
source "$(dirname "$0")/common.sh"

# is_listed PATH LIST: succeeds if LIST contains PATH as a whole word. (grep -q would end early and break the pipe of
# the commands before it.)
is_listed() { [ -f "$2" ] && grep -v '^[[:space:]]*#' "$2" | tr -s ' ()\t' '\n' | grep -xF -- "$1" >/dev/null; }

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
