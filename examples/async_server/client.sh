#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of the server have in common: to be sourced, with the program in `program`.

fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# start [ARGUMENT...]: starts the server, with at most $descriptors open files if that is set; then `port` is where it listens and
# `token` is the one that it generated.
start() {
  local line
  coproc server { [ -z "${descriptors-}" ] || ulimit -n "$descriptors"; exec "$program" --run-dir run "$@"; }
  pid=$server_PID
  exec {says}<&"${server[0]}"
  read -r -t 120 -u "$says" line || fail "the server did not say where it listens"
  port=${line##*:}
  if [[ " $* " != *" --token-file "* ]]; then
    read -r -t 120 -u "$says" line || fail "the server did not say its token"
    token=${line#token }
  fi
  trap 'kill -9 "$pid" 2>/dev/null || true' EXIT
}
# ended: its exit code must be 0; then `last_step` is how far it came.
ended() {
  local line code=0
  read -r -t 120 -u "$says" line || fail "the server did not say how far it came"
  last_step=${line##* }
  wait "$pid" || code=$?
  [ "$code" = 0 ] || fail "the server ended with $code"
}

# ask PATH [CURL ARGUMENT...]: the answer, then the status on a line of its own.
ask() { curl -sS --max-time 60 -w '\n%{http_code}' "http://127.0.0.1:$port$1" "${@:2}" || fail "no answer to $*"; }
# expect STATUS TEXT PATH [CURL ARGUMENT...]: the answer has that status, and TEXT, a pattern, in it.
expect() {
  local said
  said=$(ask "${@:3}")
  [[ ${said##*$'\n'} = "$1" && $said =~ $2 ]] || fail "asked for ${*:3}, expected $1 and $2, got: $said"
}
# stop: ends the training by /stop.
stop() { expect 200 '"stopping_at":' /stop -d '' -H "Authorization: Bearer $token"; }
# step_now: the step that /status tells.
step_now() { ask /status | sed -n 's/.*"step":\([0-9]*\).*/\1/p'; }
# trains_on: soon the step is greater than it was.
trains_on() {
  local before tries
  before=$(step_now)
  for ((tries = 0; tries < 10000; ++tries)); do
    [ "$(step_now)" = "$before" ] || return 0
  done
  fail "training stands still at step $before"
}
