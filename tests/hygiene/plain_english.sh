#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the English of comments and of pages: "what", "whatever", "who" and "whoever" as relative pronouns at most twice per 1,000
# words, and no metaphors for technical terms. Text in backquotes and code blocks does not count.
source "$(dirname "$0")/common.sh"

# check KIND FILE...: KIND is comments or pages.
check() {
  local kind=$1
  shift
  [ $# != 0 ] || return 0
  awk -v kind="$kind" '
    FNR == 1 { is_code = 0; is_script = FILENAME ~ /\.(sh|cmake|txt)$/ }
    kind == "pages" && /^[ >]*```/ { is_code = !is_code; next }
    {
      text = $0
      if (kind == "pages") {
        if (is_code) { next }
      } else if (is_script) {
        if (!sub(/^[ \t]*#[ \t]+/, "", text)) { next }
      } else if (!sub(/^(.*[ \t])?\/\/+[\/<!]*[ \t]*/, "", text)) {
        next
      }
      if (text ~ /SPDX/) { next }
      gsub(/`[^`]*`/, "X", text)
      gsub(/"[^"]*"/, "X", text)
      plain = tolower(text)
      gsub(/[^a-z'"'"'?.! ]/, " ", plain)
      count = split(plain, word, " ")
      for (i = 1; i <= count; ++i) {
        token = word[i]
        gsub(/[.!]/, "", token)
        words += token ~ /[a-z]/
        if (token ~ /^(what|whatever|who|whoever)$/ && plain !~ /\?/) {
          ++pronouns
          found[pronouns] = FILENAME ":" FNR ": " $0
        }
        if (token ~ /^(storeys?|diary|diaries|errands?|bells?|workshops?|roofs?|waiting-?rooms?|nobody'"'"'s|somebody'"'"'s)$/) {
          print FILENAME ":" FNR ": a metaphor, \"" token "\"; use the technical term"
        }
      }
    }
    END {
      if (words > 0 && 1000 * pronouns > 2 * words + 2000) {
        printf "%s: %d relative pronouns in %d words, more than 2 per 1,000\n", kind, pronouns, words
        for (i = 1; i <= pronouns; ++i) { print found[i] }
      }
    }' "$@" >>"$mistakes"
}

mapfile -t sources < <(files src tests examples modules conan cmake -- .hpp .cpp .cppm .sh .cmake CMakeLists.txt | grep -v 'tests/hygiene/')
mapfile -t pages < <({ files docs -- .md; ls ./*.md 2>/dev/null; } | grep -v 'CHANGELOG')
check comments "${sources[@]}"
check pages "${pages[@]}"
finish
