#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the include graph of src/stepwell. A folder includes only itself and lower layers (layers.txt), and hooks does
# not include session. No folder includes the tool (src/tool). Examples and pages do not include headers of a detail/
# folder.
source "$(dirname "$0")/common.sh"

files src/stepwell -- .hpp .cpp | xargs -r awk -v table="$here/layers.txt" '
  BEGIN {
    while ((getline line < table) > 0) {
      if (line ~ /^#/) { continue }
      count = split(line, word, " ")
      for (i = 2; i <= count; ++i) { layer[word[i]] = word[1] }
    }
  }
  FNR == 1 {
    split(FILENAME, part, "/")  # src/stepwell/FOLDER/...
    own = part[3]
    if (own !~ /\./ && !(own in layer)) { print FILENAME ": the folder " own " has no layer in layers.txt" }
  }
  own ~ /\./ { next }  # umbrella headers, such as src/stepwell/stepwell.hpp, may include every folder
  /^[ \t]*#[ \t]*include[ \t]*[<"]stepwell\// {
    path = $0
    sub(/^[^<"]*[<"]stepwell\//, "", path)
    sub(/[>"].*/, "", path)
    split(path, part, "/")
    to = part[1]
    if (to == own) { next }
    if (own == "hooks" && to == "session") { print FILENAME ":" FNR ": hooks includes session; a hook needs hook only" }
    if (!(to in layer)) { print FILENAME ":" FNR ": includes stepwell/" path ", which has no layer"; next }
    if (layer[to] + 0 >= layer[own] + 0) {
      print FILENAME ":" FNR ": " own " (layer " layer[own] ") includes " to " (layer " layer[to] ")"
    }
  }
  /^[ \t]*#[ \t]*include[ \t]*[<"]tool\// { print FILENAME ":" FNR ": the library includes the tool"; next }
  /^[ \t]*#[ \t]*include[ \t]*"/ && !/"stepwell\// && !/\.pb\.h"/ {
    print FILENAME ":" FNR ": our own headers are included from the root: \"stepwell/...\""
  }' >>"$mistakes"
files examples docs README.md -- .hpp .cpp .md |
  xargs -r grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]stepwell/([^>"]*/)?detail/' | while IFS=: read -r file line text; do
    mistake "$file:$line: includes a header of detail/"
  done || true
finish
