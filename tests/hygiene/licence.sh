#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every source file names its licence in its first line. Scripts name it in the second line; compile-fail
# tests begin with the expected diagnostic.
source "$(dirname "$0")/common.sh"

for file in $(files src tests examples cmake modules docs conan -- .hpp .cpp .cppm .cmake .sh .proto .py CMakeLists.txt) \
  $(find CMakeLists.txt docs/build examples/run tests/run .ci/run 2>/dev/null || true); do
  head -n 2 "$file" | grep 'SPDX-License-Identifier: Apache-2.0' >/dev/null || mistake "$file: does not begin with the licence line"
done
finish
