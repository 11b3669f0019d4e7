#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that all C++ code of the documentation is compiled or compared. Blocks with a `main` are skipped, because
# tests/docs and tests/module compile them. Each line of the other ```cpp blocks must be part of a line of one of the
# .cpp and .hpp files that the page links to, apart from comments and white space. A page with such a block and without
# such a link is a mistake, and so is C++ code in a block that is not marked as ```cpp.
source "$(dirname "$0")/common.sh"

# bare: removes comments, folds white space, and drops lines that are only punctuation.
bare() { sed 's#//.*##; s/[[:space:]]\{1,\}/ /g; s/^ //; s/[ ;{]*$//' | grep '[[:alpha:]]' || true; }
# excerpts PAGE: prints the ```cpp blocks of the page without those that contain a `main`.
excerpts() {
  awk '/^```cpp$/ { inside = 1; block = ""; next }
       /^```/ && inside { inside = 0; if (block !~ /(^|\n)int main\(/) printf "%s", block; next }
       inside { block = block $0 "\n" }' "$1"
}
# unmarked PAGE: prints the line number of each block that has C++ code (`sw::`, or a line that ends in `;` or `{`, or a
# C++ fence in another spelling) and that neither tests/docs nor `excerpts` finds.
unmarked() {
  awk '!inside && /^ *```/ { inside = FNR; fence = $0; found = fence ~ /^ *```(cpp.|c\+\+|cxx|cc|hpp)/ || fence ~ /^ +```cpp/; next }
       /^ *```/ && inside { if (found) print inside; inside = 0; next }
       inside && fence ~ /^ *```(text)?$/ && /sw::|[;{]$/ { found = 1 }' "$1"
}

for page in $(files docs README.md CONTRIBUTING.md -- .md); do
  while IFS= read -r line; do
    mistake "$page:$line: C++ code in a block that no test compiles; begin the block with \`\`\`cpp"
  done < <(unmarked "$page")
  excerpt=$(excerpts "$page" | bare)
  [ -n "$excerpt" ] || continue
  shown=
  programs=
  for program in $(grep -oE '\]\([^)#[:space:]]+\.[ch]pp\)' "$page" | sed 's/^](//; s/)$//' || true); do
    [ -f "$(dirname "$page")/$program" ] || continue
    shown+=$(bare <"$(dirname "$page")/$program")$'\n'
    programs+=" ${program##*/}"
  done
  if [ -z "$programs" ]; then
    mistake "$page: has C++ code without a main, and links to no program that has the code"
    continue
  fi
  while IFS= read -r line; do
    [[ $shown == *"$line"* ]] || mistake "$page: '$line' does not stand in${programs}"
  done <<<"$excerpt"
done
finish
