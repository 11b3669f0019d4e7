#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Functions of the server's tests. Sourced, with the path of the program in `program`.

fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# start [ARGUMENT...]: starts the server, with at most $descriptors open files if that is set. Sets `port` to its port
# and `token` to its generated token.
start() {
  local line
  coproc server { [ -z "${descriptors-}" ] || ulimit -n "$descriptors"; exec "$program" --run-dir run "$@"; }
  pid=$server_PID
  exec {says}<&"${server[0]}"
  read -r -t 120 -u "$says" line || fail "the server did not print its port"
  port=${line##*:}
  if [[ " $* " != *" --token-file "* ]]; then
    read -r -t 120 -u "$says" line || fail "the server did not print its token"
    token=${line#token }
  fi
  trap 'kill -9 "$pid" 2>/dev/null || true' EXIT
}
# ended: waits for the end of the server, whose exit code must be 0, and sets `last_step` to the last step it printed.
ended() {
  local line code=0
  read -r -t 120 -u "$says" line || fail "the server did not print its last step"
  last_step=${line##* }
  wait "$pid" || code=$?
  [ "$code" = 0 ] || fail "the server ended with $code"
}

# ask PATH [CURL ARGUMENT...]: prints the answer, then the status on its own line.
ask() { curl -sS --max-time 60 -w '\n%{http_code}' "http://127.0.0.1:$port$1" "${@:2}" || fail "no answer to $*"; }
# expect STATUS TEXT PATH [CURL ARGUMENT...]: checks that the answer has this status and matches the pattern TEXT.
expect() {
  local said
  said=$(ask "${@:3}")
  [[ ${said##*$'\n'} = "$1" && $said =~ $2 ]] || fail "asked for ${*:3}, expected $1 and $2, got: $said"
}
# stop: ends the training with /stop.
stop() { expect 200 '"stopping_at":' /stop -d '' -H "Authorization: Bearer $token"; }
# step_now: prints the step that /status returns.
step_now() { ask /status | sed -n 's/.*"step":\([0-9]*\).*/\1/p'; }
# trains_on: succeeds as soon as the step has changed.
trains_on() {
  local before tries
  before=$(step_now)
  for ((tries = 0; tries < 10000; ++tries)); do
    [ "$(step_now)" = "$before" ] || return 0
  done
  fail "training does not continue after step $before"
}
