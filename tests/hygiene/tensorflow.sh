#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that docs/how_to/coming-from-tensorflow.md has a row for each TensorFlow name in tensorflow.txt and no other
# row, that each stepwell name in `code` of the second column is a word in a header, and that the page links to every
# decision.
source "$(dirname "$0")/common.sh"
page=docs/how_to/coming-from-tensorflow.md
names=tests/hygiene/tensorflow.txt

# rows: prints "CLASS<tab>NAME" for each `NAME` in the first cell of a row below the heading with `CLASS`.
rows() {
  awk -F'|' '/^## / { class = ""; if (match($0, /`[^`]+`/)) { class = substr($0, RSTART + 1, RLENGTH - 2) } }
    /^\|/ && class != "" {
      cell = $2
      while (match(cell, /`[^`]+`/)) {
        print class "\t" substr(cell, RSTART + 1, RLENGTH - 2)
        cell = substr(cell, RSTART + RLENGTH)
      }
    }' "$page"
}
# listed: prints the same for tensorflow.txt, where a line is "CLASS: NAME NAME".
listed() { awk -F': *' '!/^#/ && NF == 2 && $1 != "coming" { count = split($2, name, " "); for (i = 1; i <= count; ++i) print $1 "\t" name[i] }' "$names"; }
# ours: prints the words of `code` in second cells, without string literals.
ours() {
  awk -F'|' '/^## / { inside = /`/ }
    inside && /^\|/ { cell = $3; while (match(cell, /`[^`]+`/)) { print substr(cell, RSTART + 1, RLENGTH - 2); cell = substr(cell, RSTART + RLENGTH) } }' "$page" |
    sed 's/"[^"]*"//g' | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u || true
}

[ -f "$page" ] || mistake "$page: is missing"
[ -f "$names" ] || mistake "$names: is missing"
if [ -f "$page" ] && [ -f "$names" ]; then
  while IFS=$'\t' read -r class name; do
    mistake "$page: has no row for $name of $class"
  done < <(comm -13 <(rows | sort -u) <(listed | sort -u))
  while IFS=$'\t' read -r class name; do
    mistake "$names: does not list $name of $class, which $page has"
  done < <(comm -23 <(rows | sort -u) <(listed | sort -u))
  while IFS= read -r name; do
    mistake "$page: calls something of ours $name, which no header has"
  done < <(comm -23 <(ours) <({ files src -- .hpp | xargs -r cat; sed -n 's/^coming: *//p' "$names"; } | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u))
  for decision in docs/decisions/d-*.md; do
    [ ! -f "$decision" ] || grep -qF "](../decisions/${decision##*/})" "$page" || mistake "$page: does not link to $decision"
  done
fi
finish
