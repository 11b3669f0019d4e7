#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finds messages in the table of docs/how_to/compile-errors.md that no test in tests/compile_fail expects.
source "$(dirname "$0")/common.sh"

page=docs/how_to/compile-errors.md
expected=$(grep -rhs '^// expect: ' tests/compile_fail || true)
while IFS=: read -r line message; do
  grep -qF "// expect: $message" <<<"$expected" || mistake "$page:$line: no test in tests/compile_fail expects \"$message\""
done < <(sed -n '/^| `stepwell: /{=;s/^| `\([^`]*\)`.*/\1/p}' "$page" 2>/dev/null | paste -d: - -)

finish
