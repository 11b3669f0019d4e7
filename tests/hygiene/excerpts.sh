#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the excerpts of programs in the documentation: each line of a page's ```cpp blocks must be part of a line of
# the last program that the page links to, apart from comments and white space. Pages without such a link are skipped.
# Blocks with a `main` are skipped too, because tests/docs compiles them.
source "$(dirname "$0")/common.sh"

# bare: removes comments, folds white space, and drops lines that are only punctuation.
bare() { sed 's#//.*##; s/[[:space:]]\{1,\}/ /g; s/^ //; s/[ ;{]*$//' | grep '[[:alpha:]]' || true; }
# excerpts PAGE: prints the ```cpp blocks of the page without those that contain a `main`.
excerpts() {
  awk '/^```cpp/ { inside = 1; block = ""; next }
       /^```/ && inside { inside = 0; if (block !~ /(^|\n)int main\(/) printf "%s", block; next }
       inside { block = block $0 "\n" }' "$1"
}

for page in $(files docs README.md -- .md); do
  program=$(grep -oE '\]\([^)#[:space:]]+\.cpp\)' "$page" | tail -n 1 | sed 's/^](//; s/)$//' || true)
  program=$(dirname "$page")/$program
  [ -f "$program" ] || continue
  shown=$(bare <"$program")
  while IFS= read -r line; do
    [[ $shown == *"$line"* ]] || mistake "$page: '$line' does not stand in ${program##*/}"
  done < <(excerpts "$page" | bare)
done
finish
