#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cluster.sh PROGRAM [STEPS]: starts a parameter server, a chief and two workers on this machine, and waits for the chief and the workers.
set -euo pipefail
program=$1 steps=${2:-1000}
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print("127.0.0.1:%d" % s.getsockname()[1])'; }
addresses=("$(port)" "$(port)" "$(port)" "$(port)")
start() { "$program" "$1" "$2" "${addresses[@]}" --steps "$steps" & }
start ps 0
ps=$!
trap 'kill "$ps" 2>/dev/null || true' EXIT
start chief 0
chief=$!
start worker 0
first=$!
start worker 1
second=$!
code=0
for one in "$chief" "$first" "$second"; do wait "$one" || code=1; done
exit "$code"
