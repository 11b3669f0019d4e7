#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# module.sh [ROOT] [--write]: checks that modules/stepwell.cppm includes every public header, and that it exports the names for users, each
# once. With --write, the script writes these parts of the file.
# For users are the names that a public header declares outside of a namespace `detail`. A name of a header in detail/ is for users if such
# a header, a page or a program uses it, unless its own header begins with the word "Internal" or "Private". Also checks that the names behind
# `stepwell::` in the C++ code of the pages, the examples and the programs of tests/consume are exported, or are names of an adapter.
source "$(dirname "$0")/common.sh"
unit=modules/stepwell.cppm

adapters=$(sed -n 's/^set(STEPWELL_ADAPTERS \(.*\))$/\1/p' src/headers.cmake | tr ' ' '|')

# This header and its names are there only if range-v3 is.
needs_range_v3=stepwell/coro/range_v3.hpp
if_range_v3='#if __has_include(<range/v3/range/concepts.hpp>)'

# headers: prints the public headers of the core, as src/headers.cmake finds them.
headers() { files src/stepwell -- .hpp | sed 's|^src/||' | grep -vE "/detail/|^stepwell/(${adapters:-none})/"; }
detail_headers() { headers | with_details | grep /detail/ || true; }
pages() { files README.md docs/how_to docs/tutorial docs/formats docs/reference docs/decisions docs/design -- .md; }
programs() { files examples tests/consume conan -- .hpp .cpp; }

# code FILE: prints the C++ code of a page or a source, without comments.
code() {
  case $1 in
    *.md) awk '/^ *```cpp$/ { inside = 1; next } /^ *```/ { inside = 0 } inside' "$1" ;;
    *) cat "$1" ;;
  esac | sed 's|//.*||'
}

# declared HEADERS...: prints the name and the folder of each declaration in the headers of the input, in their order.
declared() {
  while read -r header; do
    folder=${header#stepwell/}
    awk -f "$here/public_names.awk" "src/$header" | sed "s|\$| ${folder%%/*}|"
  done
}

words() { grep -oE '[a-z_][a-z_0-9]*' | sort -u; }

# for_users: prints the names for users, sorted within their folder and namespace.
for_users() {
  local used more header
  local -a open=()
  used=$({ headers | sed 's|^|src/|' && pages && programs; } | while read -r file; do code "$file"; done | words)
  while true; do  # a header whose names are used uses the names of others
    more=$(detail_headers | while read -r header; do
      [[ " ${open[*]} " != *" $header "* ]] && ! grep -qE '^// (Internal|Private)\b' "src/$header" || continue
      [ -z "$(echo "$header" | declared | sed 's/ .*//; s/.*:://' | sort -u | comm -12 - <(echo "$used"))" ] || echo "$header"
    done)
    [ -n "$more" ] || break
    for header in $more; do
      open+=("$header")
      used=$({ echo "$used" && code "src/$header" | words; } | sort -u)
    done
  done
  {
    headers | declared
    printf '%s\n' "${open[@]}" | sort | grep . | declared | awk 'FNR == NR { used[$1]; next } { word = $1; sub(/.*::/, "", word) } word in used' <(echo "$used") -
  } | awk '!seen[$1]++ {
    space = $1
    sub(/::[^:]*$/, "", space)
    part = $2 " " space
    if (!(part in number)) { number[part] = ++parts }
    print number[part], $1, $2, space
  }' | sort -k1,1n -k2,2
}

# not_writable: prints the names in the code of pages and programs that neither the module nor an adapter declares.
not_writable() {
  { pages && programs; } | while read -r file; do
    { code "$file" | grep -oE '(^|[^a-z_0-9:])(sw|stepwell)(::[a-z_0-9]+)+' || true; } | sed -E "s#.*\\b(sw|stepwell)::#$file #"
  done | sort -u | grep -vE " (${adapters:-none})(::|$)" | awk '
    FNR == NR { known[$1]; space = $1; while (sub(/::[^:]*$/, "", space)) { spaces[space] } next }
    {
      count = split($2, words, "::")
      name = "stepwell"
      for (i = 1; i <= count && name in spaces; ++i) { name = name "::" words[i] }
      if (!(name in known) && !(name in spaces)) { print $1 ": " name }
    }' <({ for_users | awk '{ print $2 }' && files src/stepwell -- .hpp | sed 's|^src/||' | grep -E "^stepwell/(${adapters:-none})/" | declared; } | sort -u) -
}

# written: prints the file as it should be.
written() {
  sed '/^#include "stepwell\//,$d' "$unit"
  headers | grep -vx stepwell/stepwell.hpp | sort | while read -r header; do
    case $header in
      "$needs_range_v3") printf '%s\n#include "%s"\n#endif\n' "$if_range_v3" "$header" ;;
      *) printf '#include "%s"\n' "$header" ;;
    esac
  done
  printf '\n'
  sed -n '/^export module/,/^}  \/\/ namespace std$/p' "$unit"
  for_users | awk -v condition="$if_range_v3" -v conditional="$(echo "$needs_range_v3" | declared | sed 's/ .*//')" '
    BEGIN { split(conditional, names, "\n"); for (i in names) { is_conditional[names[i]] } }
    $1 != part { if (part) { print "}  // namespace " space } part = $1; space = $4; printf "\n// %s\nexport namespace %s {\n", $3, space }
    { print $2 in is_conditional ? condition "\nusing " $2 ";\n#endif" : "using " $2 ";" }
    END { print "}  // namespace " space }'
}

[ -f "$unit" ] || { mistake "$unit: is missing"; finish; }
if [ "${2:-}" = --write ]; then
  written >"$unit.new"
  mv "$unit.new" "$unit"
fi
while IFS= read -r line; do mistake "$unit: differs from the headers: $line (tests/hygiene/module.sh . --write)"; done \
  < <(diff "$unit" <(written) | grep '^[<>] [#u]' || true)
while IFS= read -r line; do mistake "$line cannot be written with \`import stepwell;\`: no public header declares it"; done < <(not_writable)
finish
