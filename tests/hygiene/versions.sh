#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Forbids names that compile only with the libraries of Debian 12: Catch2 3 renamed them, or newer standard headers no
# longer include them.
source "$(dirname "$0")/common.sh"

# forbid PATTERN WHY FILE...: records a mistake for each line of the files that matches the pattern.
forbid() {
  local pattern=$1 why=$2
  shift 2
  [ $# = 0 ] || grep -nE -H -- "$pattern" "$@" | sed "s|^\([^:]*:[0-9]*\):.*|\1: $why|" >>"$mistakes" || true
}

mapfile -t tests < <(files tests -- .hpp .cpp | grep -v '^tests/support/\(catch.hpp\|main.cpp\)$')
forbid 'Catch::(Matchers::)?Contains\b' "Catch2 3 has no such name; say ContainsSubstring (tests/support/catch.hpp)" "${tests[@]}"
forbid '#include <catch2/' "Catch2 2 and 3 have different headers; include support/catch.hpp" "${tests[@]}"

mapfile -t without_unistd < <(files src tests examples -- .hpp .cpp | xargs -r grep -L '#include <unistd.h>')
forbid '(^|[^A-Za-z0-9_])::(getpid|getppid|fork|pipe|unlink|usleep|execvp?|dup2|geteuid|getuid|_exit|fsync|ftruncate|lseek|pwrite|pread)\(' \
  "this function needs #include <unistd.h>" "${without_unistd[@]}"

mapfile -t without_ranges < <(files src tests examples -- .hpp .cpp | xargs -r grep -L '#include <fmt/ranges.h>')
forbid 'fmt::join\(' "since fmt 11 this function needs #include <fmt/ranges.h>" "${without_ranges[@]}"
finish
