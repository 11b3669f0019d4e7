#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# all.sh [ROOT]: runs every check of this folder, also after a check has failed. The exit code is 0 if all checks pass.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
code=0
for check in "$here"/*.sh; do
  case ${check##*/} in all.sh | common.sh | self_test.sh) continue ;; esac
  bash "$check" "${1:-$here/../..}" || code=1
done
exit "$code"
