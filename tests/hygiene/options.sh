#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# options.sh [ROOT] [--write]: checks that docs/how_to/options.md has each options struct of the public headers, with each member, its type,
# its default, and of its comment the first sentence and the sentences about special values. The tables are between two marks. With --write, the script writes them.
source "$(dirname "$0")/common.sh"
page=docs/how_to/options.md

# tables FILE...: prints a table for each options struct of the headers.
tables() {
  awk '
    # Returns the first sentence of a comment, and those about the default and about special values.
    function summary(text,   one, made) {
      sub(/ ?@see.*/, "", text)
      gsub(/\|/, "\\|", text)
      gsub(/\[\]\(/, "[] (", text)  # the parameters of a lambda are not a link
      sub(/^ +/, "", text)
      while (text != "") {
        one = text
        text = ""
        if (match(one, /\. [A-Z0-9`"(]/)) { text = substr(one, RSTART + 2); one = substr(one, 1, RSTART) }
        if (made == "") { made = one } else if (one ~ /^(Default|Empty:|Null:|Off:|True:|False:|0:|Zero:)/) { made = made " " one }
      }
      return made
    }
    # Returns the default of a member.
    function show(type, value) {
      if (value == "" && type == "evaluation_period") { return "required" }
      if (value == "{}" && type ~ /^setting</) { return "not set" }
      if (value == "{}" && type ~ /(_options|_policy|_bounds|_config|target|restore_from)$/) { return "its defaults" }
      if (value == "{}" || value == "std::nullopt" || value == "") { return "empty" }
      return value == "nullptr" ? "null" : "`" value "`"
    }
    # Prints the row of the last member. Its comment may go on in the next line, so the row is printed after it. A member without a comment
    # after one of the "Periods" is another of these periods.
    function row() {
      if (member == "") { return }
      if (comment == "" && shared ~ /^Periods /) { comment = shared }
      printf "| `%s` | `%s` | %s | %s |\n", member, type, show(type, value), summary(comment)
      shared = comment
      member = ""
    }
    FNR == 1 { inside = 0; text = ""; is_private = FILENAME ~ /\/detail\// }
    /^\/\/\/ / { text = text (text == "" ? "" : " ") substr($0, 5); next }
    /^template</ || /^\/\/\/$/ { next }
    !inside && /^struct [a-z_]*(_options|_policy|_bounds|_setup|_config|keep_best)(<[a-z_:]*>)? \{$/ && (!is_private || text ~ /^Options of `/) {
      name = $2
      printf "\n### `%s`\n\n%s `%s`\n\n| member | type | default | meaning |\n|---|---|---|---|\n", name, summary(text), substr(FILENAME, 5)
      inside = 1
      comment = above = shared = member = ""
      next
    }
    inside && /^\};/ { row(); inside = 0; text = ""; next }
    !inside { text = ""; next }
    /^ +\/\/\/< / { sub(/^ +\/\/\/< /, ""); comment = comment " " $0; next }
    /^ +\/\/\/ / { row(); sub(/^ +\/\/\/ /, ""); above = above (above == "" ? "" : " ") $0; next }
    /^ +(using|operator) / { next }
    /;( +\/\/\/< .*)?$/ {
      row()
      comment = above
      above = ""
      line = $0
      if (match(line, / +\/\/\/< /)) { comment = comment (comment == "" ? "" : " ") substr(line, RSTART + RLENGTH); line = substr(line, 1, RSTART - 1) }
      sub(/;$/, "", line)
      sub(/^ +/, "", line)
      value = ""
      if (match(line, / = /)) { value = substr(line, RSTART + 3); line = substr(line, 1, RSTART - 1) }
      match(line, /[a-z_0-9]+$/)
      member = substr(line, RSTART)
      type = substr(line, 1, RSTART - 2)
      gsub(/\|/, "\\|", type)
      next
    }
  ' "$@"
}

first=src/stepwell/session/training_options.hpp  # the options that every program uses
declare -a headers=()
[ ! -f "$first" ] || headers+=("$first")
# The options of the HTTP server, which is a part of the board, are left out: they have the same name as those of a server of TensorFlow.
for folder in training hooks data checkpoint summary session creation threads protocol base schedules kernel group board tensorflow; do
  while IFS= read -r header; do [ "$header" = "$first" ] || headers+=("$header"); done < <(files "src/stepwell/$folder" -- .hpp | grep -v '/http_server\.hpp$' || true)
done
[ ${#headers[@]} = 0 ] || made=$(tables "${headers[@]}")
if [ "${2:-}" = --write ]; then
  { sed '/^<!-- options -->$/q' "$page"; printf '%s\n\n' "$made"; sed -n '/^<!-- end of options -->$/,$p' "$page"; } >"$page.new"
  mv "$page.new" "$page"
fi
if [ -n "${made:-}" ]; then
  shown=$(sed -n '/^<!-- options -->$/,/^<!-- end of options -->$/p' "$page" 2>/dev/null | sed '1d;$d' || true)
  while IFS= read -r line; do
    mistake "$page: differs from the headers: $line; write the tables with: bash tests/hygiene/options.sh . --write"
  done < <(diff <(printf '%s\n' "$shown" | sed '/^$/d') <(printf '%s\n' "$made" | sed '/^$/d') | grep '^[<>]' || true)
fi
finish
