#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# raw_session.sh [ROOT] [--write]: checks that only protocol/raw_session.hpp looks for members of raw sessions, that each of its members is used,
# and that docs/how_to/own-raw-session.md has its table, between two marks. With --write, the script writes the table.
source "$(dirname "$0")/common.sh"
header=src/stepwell/protocol/raw_session.hpp
page=docs/how_to/own-raw-session.md

# tables HEADER: prints a table for each part of the header's table.
tables() {
  awk '
    /^\/\/ ---- / {
      title = substr($0, 9)
      sub(/^(The table of the|Further) /, "", title)
      sub(/\..*/, "", title)
      text = ""
      heading = "\n" toupper(substr(title, 1, 1)) substr(title, 2) ":\n\n| member | meaning | without it |\n|---|---|---|\n"
      next
    }
    /^\/\/ / { text = text (text == "" ? "" : " ") substr($0, 4); next }
    /^STEPWELL_OPTIONAL_MEMBER/ {
      place = index(text, " Without it: ")
      without = substr(text, place + 13)
      match($0, /"[^"]*"/)
      printf "%s| `%s` | %s | %s |\n", heading, substr($0, RSTART + 1, RLENGTH - 2), substr(text, 1, place - 1),
             toupper(substr(without, 1, 1)) substr(without, 2)
      heading = ""
    }
    { text = "" }
  ' "$1"
}

while IFS= read -r line; do
  mistake "$line: looks for a member of a raw session; ask the table of $header"
done < <(files src/stepwell -- .hpp .cpp | grep -v "^$header$" | xargs -r grep -nHE 'requires.*(\braw(_|_session\(\))?(\.|->)|\bRaw::[a-z])' | cut -d: -f1,2 || true)

if [ -f "$header" ]; then
  for member in $(sed -n 's/^STEPWELL_OPTIONAL_MEMBER(\([a-z_]*\), .*/\1/p' "$header"); do
    grep -rqE "has_$member\b" src/stepwell || mistake "$header: nothing asks for $member"
  done
  made=$(tables "$header")
  if [ "${2:-}" = --write ]; then
    { sed '/^<!-- optional members -->$/q' "$page"; printf '%s\n\n' "$made"; sed -n '/^<!-- end of optional members -->$/,$p' "$page"; } >"$page.new"
    mv "$page.new" "$page"
  fi
  shown=$(sed -n '/^<!-- optional members -->$/,/^<!-- end of optional members -->$/p' "$page" 2>/dev/null | sed '1d;$d' || true)
  while IFS= read -r line; do
    mistake "$page: differs from $header: $line; write the tables with: bash tests/hygiene/raw_session.sh . --write"
  done < <(diff <(printf '%s\n' "$shown" | sed '/^$/d') <(printf '%s\n' "$made" | sed '/^$/d') | grep '^[<>]' || true)
fi
finish
