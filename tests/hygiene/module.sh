#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# module.sh [ROOT] [--write]: checks that modules/stepwell.cppm includes every public header, and that it exports the names for users, each
# once. With --write, the script writes these parts of the file.
# A name is for users if a public header declares it and users are shown it: in the C++ code of a page, an example or a program of
# tests/consume, or between backticks on a page, where it stands first.
source "$(dirname "$0")/common.sh"
unit=modules/stepwell.cppm

# headers: prints the public headers of the core, as src/headers.cmake finds them.
headers() {
  local adapters
  adapters=$(sed -n 's/^set(STEPWELL_ADAPTERS \(.*\))$/\1/p' src/headers.cmake | tr ' ' '|')
  files src/stepwell -- .hpp | sed 's|^src/||' | grep -vE "/detail/|^stepwell/(${adapters:-none})/"
}
pages() { files README.md docs/how_to docs/tutorial docs/formats docs/reference -- .md | xargs -r cat; }
programs() { files examples tests/consume conan -- .hpp .cpp | xargs -r cat; }

# shown: prints the words, without the names of their namespaces, that users are shown.
shown() {
  {
    { programs && pages | awk '/^ *```cpp$/ { inside = 1; next } /^ *```/ { inside = 0 } inside'; } |
      sed 's|//.*||' | grep -oE '\b(sw|stepwell|coro|metrics|schedules|kernel|format|io|data|summary)(::[a-z_0-9]+)+' | tr -s ':' '\n' || true
    pages | awk '/^ *```/ { fenced = !fenced; next } !fenced' | grep -oE '`[a-z_0-9:]+' | sed 's/.*[`:]//' || true
  } | sort -u
}

# declared: prints the name and the folder of each declaration in a public header, in the order of the headers.
declared() {
  headers | while read -r header; do
    folder=${header#stepwell/}
    awk -f "$here/public_names.awk" "src/$header" | sed "s|\$| ${folder%%/*}|"
  done
}

# for_users: prints those names, sorted within their folder and namespace.
for_users() {
  awk 'FNR == NR { shown[$1]; next } { word = $1; sub(/.*::/, "", word) } word in shown && !seen[$1]++ {
         space = $1
         sub(/::[^:]*$/, "", space)
         part = $2 " " space
         if (!(part in number)) { number[part] = ++parts }
         print number[part], $1, $2, space
       }' <(shown) <(declared) | sort -k1,1n -k2,2
}

# written: prints the file as it should be.
written() {
  sed '/^#include "stepwell\//,$d' "$unit"
  headers | grep -vx stepwell/stepwell.hpp | sort | while read -r header; do
    case $header in
      */range_v3.hpp) printf '#if __has_include(<range/v3/range/concepts.hpp>)\n#include "%s"\n#endif\n' "$header" ;;
      *) printf '#include "%s"\n' "$header" ;;
    esac
  done
  printf '\n'
  sed -n '/^export module/,/^}  \/\/ namespace std$/p' "$unit"
  for_users | awk '
    $1 != part { if (part) { print "}  // namespace " space } part = $1; space = $4; printf "\n// %s\nexport namespace %s {\n", $3, space }
    { print "using " $2 ";" }
    END { print "}  // namespace " space }'
}

[ -f "$unit" ] || { mistake "$unit: is missing"; finish; }
if [ "${2:-}" = --write ]; then
  written >"$unit.new"
  mv "$unit.new" "$unit"
fi
while IFS= read -r line; do mistake "$unit: differs from the headers and pages: $line (tests/hygiene/module.sh . --write)"; done \
  < <(diff "$unit" <(written) | grep '^[<>] [#u]' || true)
finish
