#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A link of the documentation to a file of this tree leads somewhere.
source "$(dirname "$0")/common.sh"

for page in $(files . -- .md); do
  for target in $(sed -n '/^```/,/^```/!p' "$page" | grep -oE '\]\([^)#[:space:]]+' | sed 's/^](//' || true); do
    case $target in *://* | mailto:* | @ref) continue ;; esac
    [ -e "$(dirname "$page")/$target" ] || mistake "${page#./}: links to $target, which is not there"
  done
done
finish
