#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the things that the pages name exist: the words with an underscore in `code`, long options, variables
# STEPWELL_..., files of the tree, presets, and the subcommands of `tests/run` and `stepwell`. named.txt lists words of
# other projects and invented words. C++ code in the pages is compiled, or compared with compiled code (excerpts.sh).
source "$(dirname "$0")/common.sh"

pages() {
  files README.md CONTRIBUTING.md docs -- .md | grep -v 'coming-from-tensorflow.md$' || true  # tensorflow.sh checks this page
}
# inline_code PAGE: prints the text between backticks outside of code blocks.
inline_code() {
  awk '/^```/ { fenced = !fenced; next }
    !fenced { while (match($0, /`[^`]+`/)) { print substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' "$1"
}
# shell PAGE: prints its shell blocks.
shell() { awk '/^```(sh|bash|console)$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1"; }
commands() { inline_code "$1" && shell "$1"; }
# own_words PAGE: prints the words of its C++ blocks.
own_words() { awk '/^```cpp$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1" | grep -oE '[A-Za-z_][A-Za-z0-9_]*' || true; }
# everything: prints all files of the tree except prose, and the names of the source files.
everything() {
  files src tests -- .hpp .cpp | sed 's|.*/||'
  files src examples tests cmake modules conan CMakeLists.txt CMakePresets.json -- .hpp .cpp .cppm .txt .cmake .in .sh .py .proto .json |
    grep -v '^tests/hygiene/self_test/' | xargs -r cat
  cat tests/run examples/run .ci/run 2>/dev/null || true
}
# complain PAGE WHAT: records a mistake for each line of the input.
complain() {
  local one
  while IFS= read -r one; do mistake "$1: $2 $one"; done
}
# list NAME: keeps the lines of the input, and the words of named.txt, as the list NAME.
lists=$(mktemp -d)
trap 'rm -rf "$mistakes" "$lists"' EXIT
list() { { cat; grep -v '^#' tests/hygiene/named.txt 2>/dev/null || true; } | sort -u >"$lists/$1"; }
# missing_from NAME: prints the lines of the input that the list NAME lacks.
missing_from() { sort -u | comm -23 - "$lists/$1"; }

code=$(everything)
{ printf '%s\n' "$code" | grep -aoE '[A-Za-z_][A-Za-z0-9_]*' || true; } | list words
{ printf '%s\n' "$code" | grep -aoE -- '--[a-z][a-z0-9-]+' || true; } | list options
{ sed -n 's/^  \([a-z0-9]*\)) .*run_.*/\1/p' tests/run 2>/dev/null || true; } | list kinds
{ grep -oE '"name": "[a-z-]+"' CMakePresets.json 2>/dev/null | cut -d'"' -f4 || true; } | list presets
{ sed -n 's/.*\badd_subcommand("\([a-z]*\)".*/\1/p; s/.*\badd("\([a-z]*\)", .*/\1/p' src/tool/*.cpp 2>/dev/null || true; } | list requests

while IFS= read -r page; do
  inline_code "$page" | sed -E 's/"[^"]*"//g; s/[^ ]*\/[^ ]*//g' | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | grep _ | missing_from words | comm -23 - <(own_words "$page" | sort -u) | complain "$page" "nothing is called" || true
  commands "$page" | grep -oE -- '(^|[ [])--[a-z][a-z0-9-]+' | tr -d ' [' | missing_from options | complain "$page" "nothing takes the option" || true
  { grep -oE 'STEPWELL_[A-Z_]+' "$page" || true; } | missing_from words | complain "$page" "nothing is called"
  { commands "$page" | grep -oE '(^|[ (])(src|tests|examples|docs|cmake|modules|conan)/[A-Za-z0-9_./-]+' || true; } | tr -d ' (' | sort -u |
    while IFS= read -r path; do [ -e "$path" ] || echo "$path"; done | complain "$page" "there is no"
  { commands "$page" | grep -oE 'tests/run [a-z0-9]+' || true; } | cut -d' ' -f2 | missing_from kinds | complain "$page" "tests/run has no"
  { commands "$page" | grep -oE -- '--preset [a-z-]+' || true; } | cut -d' ' -f2 | missing_from presets | complain "$page" "there is no preset"
  { shell "$page" | grep -oE '(^|[$(] ?)stepwell [a-z]+' || true; } | sed 's/.* //' | missing_from requests | complain "$page" "the program stepwell has no"
done < <(pages)
finish
