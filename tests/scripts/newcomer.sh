#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the commands of README's section "Try it", word for word, in the clone that contains this script. Fails if a command fails, or if a
# compiler prints a warning. `.ci/run` and `tests/run bare` begin with this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT

mapfile -t commands < <(awk '/^## / { inside = $0 == "## Try it" } /^```/ { block = inside && !block; next } block' README.md)
[ "${#commands[@]}" = 2 ] || { echo "README's section \"Try it\" has ${#commands[@]} commands instead of two" >&2 && exit 1; }
for command in "${commands[@]}"; do
  TIMEFORMAT="${command%%#*} took %R s; processor time: %U s, and %S s in the system"
  time bash -c "$command" </dev/null 2>&1 | tee "$printed"
  if grep ': warning: ' "$printed"; then echo "these are the warnings that a newcomer sees" >&2 && exit 1; fi
done
