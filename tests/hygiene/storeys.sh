#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Includes go down only: a folder includes itself and lower storeys (storeys.txt), never a neighbour, never upwards. The
# tool (src/tool) stands above them all, and none includes it.
source "$(dirname "$0")/common.sh"

files src/stepwell -- .hpp .cpp | xargs -r awk -v table="$here/storeys.txt" '
  BEGIN {
    while ((getline line < table) > 0) {
      if (line ~ /^#/) { continue }
      count = split(line, word, " ")
      for (i = 2; i <= count; ++i) { storey[word[i]] = word[1] }
    }
  }
  FNR == 1 {
    split(FILENAME, part, "/")  # src/stepwell/FOLDER/...
    own = part[3]
    if (own !~ /\./ && !(own in storey)) { print FILENAME ": the folder " own " has no storey in storeys.txt" }
  }
  own ~ /\./ { next }  # src/stepwell/stepwell.hpp stands on the roof
  /^[ \t]*#[ \t]*include[ \t]*[<"]stepwell\// {
    path = $0
    sub(/^[^<"]*[<"]stepwell\//, "", path)
    sub(/[>"].*/, "", path)
    split(path, part, "/")
    to = part[1]
    if (to == own) { next }
    if (!(to in storey)) { print FILENAME ":" FNR ": includes stepwell/" path ", which has no storey"; next }
    if (storey[to] >= storey[own]) {
      print FILENAME ":" FNR ": " own " (storey " storey[own] ") includes " to " (storey " storey[to] ")"
    }
  }
  /^[ \t]*#[ \t]*include[ \t]*[<"]tool\// { print FILENAME ":" FNR ": the library includes the tool"; next }
  /^[ \t]*#[ \t]*include[ \t]*"/ && !/"stepwell\// && !/\.pb\.h"/ {
    print FILENAME ":" FNR ": our own headers are included from the root: \"stepwell/...\""
  }' >>"$mistakes"
finish
