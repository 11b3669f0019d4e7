#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One idea a file: more than 400 lines are refused. The module is one list of names, as long as there are names.
source "$(dirname "$0")/common.sh"

for file in $(files src tests examples -- .hpp .cpp .sh .cmake); do
  lines=$(wc -l <"$file")
  [ "$lines" -le 400 ] || mistake "$file: $lines lines; split it"
done
finish
