#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every link of the documentation to a file of this tree has an existing target.
source "$(dirname "$0")/common.sh"

for page in $(files . -- .md); do
  for target in $(sed -n '/^```/,/^```/!p' "$page" | grep -oE '\]\([^)#[:space:]]+' | sed 's/^](//' || true); do
    case $target in *://* | mailto:* | @ref) continue ;; esac
    [ -e "$(dirname "$page")/$target" ] || mistake "${page#./}: links to $target, which is not there"
  done
done
finish
