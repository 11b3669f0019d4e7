#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Forbids co_await in a controlling expression, because g++ 12 miscompiles it. An initialiser (`if (auto x = co_await
# f(); x)`, the range of a range-for) is allowed.
source "$(dirname "$0")/common.sh"

files src tests examples -- .hpp .cpp | xargs -r -n 1 awk '
  { text = text $0 "\n" }
  END {
    # Comments and literals are replaced by the line breaks they contain.
    plain = ""
    while (match(text, /\/\/[^\n]*|\/\*|"([^"\\\n]|\\.)*"|\047([^\047\\\n]|\\.)+\047/)) {
      plain = plain substr(text, 1, RSTART - 1)
      found = substr(text, RSTART, RLENGTH)
      rest = substr(text, RSTART + RLENGTH)
      if (found == "/*") {
        end = index(rest, "*/")
        if (end == 0) { end = length(rest) }
        lines = substr(rest, 1, end)
        gsub(/[^\n]/, "", lines)
        plain = plain lines
        rest = substr(rest, end + 2)
      }
      text = rest
    }
    plain = plain text
    line = 1
    while (match(plain, /(^|[^A-Za-z0-9_])(if|while|switch|for)[ \t\n]*(constexpr)?[ \t\n]*\(/)) {
      before = substr(plain, 1, RSTART + RLENGTH - 1)
      keyword = substr(plain, RSTART, RLENGTH)
      line += gsub(/\n/, "", before)
      plain = substr(plain, RSTART + RLENGTH)
      depth = 1
      clause = 1
      delete clauses
      for (i = 1; i <= length(plain) && depth > 0; ++i) {
        letter = substr(plain, i, 1)
        if (letter ~ /[({[]/) { ++depth }
        if (letter ~ /[)}\]]/) { --depth }
        if (depth == 1 && letter == ";") { ++clause } else if (depth > 0) { clauses[clause] = clauses[clause] letter }
      }
      is_for = keyword ~ /for/
      if (is_for && clause < 3) { continue }  # a range-for
      condition = is_for ? clauses[2] : clauses[clause]
      if (condition ~ /(^|[^A-Za-z0-9_])co_await([^A-Za-z0-9_]|$)/) {
        print FILENAME ":" line ": co_await in a controlling expression; name the value first"
      }
    }
  }' >>"$mistakes"
finish
