#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# self_test.sh CHECK: shows that CHECK.sh accepts a clean tree (self_test/clean.txt) and complains about every tree of
# self_test/CHECK.txt, which adds files to the clean tree. In these files "#! TEXT" begins a tree and gives the expected
# complaint ("nothing" for none), and "== FILE" begins a file. @@ is removed; it keeps this folder free of the mistakes
# themselves.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0 cases=0 file='' expected=''

# put LINE: adds a line of a tree's description to the tree.
put() {
  case $1 in
    "== "*)
      file=$tree/${1#== }
      mkdir -p "$(dirname "$file")"
      : >"$file"
      ;;
    *) printf '%s\n' "${1//@@/}" >>"$file" ;;
  esac
}

plant_clean_tree() {
  local line
  rm -rf "$tree"
  mkdir -p "$tree"
  while IFS= read -r line; do put "$line"; done <"$here/self_test/clean.txt"
}

# judge: runs the check on the current tree and compares its output with the expected complaint.
judge() {
  local said code=0
  said=$(bash "$here/$check.sh" "$tree" 2>&1) || code=$?
  cases=$((cases + 1))
  if [ "$expected" = nothing ]; then
    [ $code != 0 ] || return 0
  else
    [ $code = 0 ] || [[ $said != *"$expected"* ]] || return 0
  fi
  printf 'expected: %s\nsaid (code %s): %s\n\n' "$expected" "$code" "$said"
  failures=$((failures + 1))
}

expected=nothing
plant_clean_tree
while IFS= read -r line; do
  case $line in
    "#! "*)
      judge
      expected=${line#"#! "}
      plant_clean_tree
      ;;
    *) put "$line" ;;
  esac
done <"$here/self_test/$check.txt"
judge
echo "$check: $cases trees, $failures failure(s)"
[ $failures = 0 ] && [ $cases -ge 2 ]
