#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# all.sh [ROOT]: every check of this folder; what they say goes on to the last, and the exit code is 0 if all are content.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
code=0
for check in "$here"/*.sh; do
  case ${check##*/} in all.sh | common.sh | self_test.sh) continue ;; esac
  bash "$check" "${1:-$here/../..}" || code=1
done
exit "$code"
