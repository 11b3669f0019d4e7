#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finds text that lost a quotation mark or a space: a literal that contains an operator meant to be outside of it (`" +
# name + "`), and adjacent literals that join two words without a space.
source "$(dirname "$0")/common.sh"

files src tests examples -- .hpp .cpp .cppm | xargs -r -n 1 awk '
  function complain(what) { print FILENAME ":" line ": " what }
  function is_word(letter) { return letter ~ /[A-Za-z0-9]/ }
  { text = text $0 "\n" }
  END {
    line = 1
    between = "none yet"  # the code since the last literal
    while (match(text, /\/\/[^\n]*|\/\*|R"[^(\n]*\(|"([^"\\\n]|\\.)*"|\047([^\047\\\n]|\\.)+\047/)) {
      skipped = substr(text, 1, RSTART - 1)
      found = substr(text, RSTART, RLENGTH)
      text = substr(text, RSTART + RLENGTH)
      between = between skipped
      line += gsub(/\n/, "", skipped)
      if (found == "/*" || found ~ /^R"/) {
        closing = found == "/*" ? "*/" : ")" substr(found, 3, length(found) - 3) "\""
        end = index(text, closing)
        rest = substr(text, 1, end + length(closing) - 1)
        text = substr(text, length(rest) + 1)
        line += gsub(/\n/, "", rest)
        if (found != "/*") { between = "a raw literal" }
        continue
      }
      if (found !~ /^"/) { between = between (found ~ /^\047/ ? "a letter" : ""); continue }
      content = substr(found, 2, length(found) - 2)
      if (content ~ /^ *\+ .* \+ *$/) { complain("a literal of code: a quotation mark is missing before it") }
      if (between ~ /^[ \t\n]*$/ && previous !~ /\\.$|\\x[0-9a-fA-F]*$|\\[0-7]+$/ && content != "" &&
          is_word(substr(previous, length(previous))) && is_word(substr(content, 1, 1))) {
        complain("two words of adjacent literals are joined without a space")
      }
      previous = content
      between = ""
    }
  }' >>"$mistakes"
finish
