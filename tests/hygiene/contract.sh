#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every rule of the contract has a row in docs/design/contract-coverage.md, and that every row is true.
# contract.txt lists the rules. The last column of "| RULE-1 | meaning of the rule | ... |" begins with one of these:
#   test            the name of a test contains the rule as a whole word;
#   D-5: SOME WORDS  the name of a test that contains D-5 also contains these words;
#   otherwise       the cell is the reason why the rule has no test.
# A test name with a rule that the page does not list is a mistake.
source "$(dirname "$0")/common.sh"
page=docs/design/contract-coverage.md
rules=tests/hygiene/contract.txt

# names: prints the names of all tests, each on a line after its file. A name may consist of several adjacent literals
# on several lines.
names() {
  files tests -- .cpp | xargs -r -n 1 awk '
    !/^[ \t]*\/\// { text = text $0 "\n" }
    END {
      while (match(text, /(^|[^A-Za-z0-9_])([A-Z]+_)*(TEST_CASE|SCENARIO)[A-Z_]*[ \t\n]*\([^"]*/)) {
        text = substr(text, RSTART + RLENGTH)
        name = ""
        while (match(text, /^[ \t\n]*"([^"\\\n]|\\.)*"/)) {
          literal = substr(text, 1, RLENGTH)
          sub(/^[ \t\n]*"/, "", literal)
          name = name substr(literal, 1, length(literal) - 1)
          text = substr(text, RLENGTH + 1)
        }
        print FILENAME "\t" name
      }
    }'
}

[ -f "$rules" ] || mistake "$rules: is missing"
[ -f "$page" ] || mistake "$page: is missing"
if [ -f "$rules" ] && [ -f "$page" ]; then
  all_names=$(mktemp)
  trap 'rm -f "$mistakes" "$all_names"' EXIT
  names >"$all_names"
  awk -v page="$page" -v rules="$rules" -v names="$all_names" '
    function complain(text) { print text }
    function trimmed(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
    # Records whole words like HOOK-LOG-1 whose first part is the first part of a family.
    function remember(file, name,    count, words, i, head) {
      count = split(name, words, /[^A-Za-z0-9-]+/)
      for (i = 1; i <= count; ++i) {
        if (words[i] !~ /^[A-Z]+(-[A-Z]+)*-[0-9]+$/) { continue }
        head = words[i]
        sub(/-.*/, "", head)
        if (!(head in heads)) { continue }
        carried[words[i]] = carried[words[i]] "\n" name
        if (!(words[i] in listed)) { complain(file ": a test carries " words[i] ", which " page " does not have") }
      }
    }
    function judge(id, what, answer,    difference, fragment) {
      if (what == "") { complain(page ": " id " does not say what the rule is") }
      if (answer == "") { complain(page ": " id " has neither a test nor a reason"); return }
      if (answer ~ /^test($|[^A-Za-z0-9_-])/) {
        if (!(id in carried)) { complain(page ": " id " claims a test, but no name carries it") }
      } else if (match(answer, /^D-[0-9]+/)) {
        difference = substr(answer, 1, RLENGTH)
        fragment = substr(answer, RLENGTH + 1)
        if (fragment !~ /^: *[^ ]/) { complain(page ": " id " names " difference " without a part of its test\047s name"); return }
        fragment = trimmed(substr(fragment, 2))
        if (index(carried[difference], fragment) == 0) {
          complain(page ": " id " has no test of " difference " with \"" fragment "\" in its name")
        }
      }
    }
    BEGIN {
      while ((getline line < rules) > 0) {
        if (line ~ /^[A-Z-]+-[0-9]+$/) { rule[line] = 1 }
        if (line ~ /^#/ || split(line, word, " ") != 2) { continue }
        highest[word[1]] = word[2]
        head = word[1]
        sub(/-.*/, "", head)
        heads[head] = 1
        for (number = 1; number <= word[2]; ++number) { rule[word[1] "-" number] = 1 }
      }
      while ((getline line < page) > 0) {
        if (line !~ /^\| *[A-Z]+(-[A-Z]+)*-[0-9]+ *\|/) { continue }
        if (split(line, cell, "|") != 5) { complain(page ": not a row of three cells: " line) }
        id = trimmed(cell[2])
        if (id in listed) { complain(page ": " id " is there twice") }
        if (!(id in rule)) { complain(page ": " id " is no rule of " rules) }
        listed[id] = 1
        what[id] = trimmed(cell[3])
        answer[id] = trimmed(cell[4])
      }
      while ((getline line < names) > 0) { remember(substr(line, 1, index(line, "\t") - 1), substr(line, index(line, "\t") + 1)) }
      for (id in rule) { if (!(id in listed)) { complain(page ": " id " is missing") } }
      for (id in listed) { judge(id, what[id], answer[id]) }
    }' >>"$mistakes"
fi
finish
