#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Uses the server like its users do, with curl, in an empty directory: bash talk.sh PROGRAM
set -euo pipefail
program=$1

source "$(dirname "$0")/client.sh"

start
expect 200 '"y":\[[-0-9.e]+,[-0-9.e]+\]' /predict --retry 60 -d '{"x": [0.5, 1]}'  # 503 before training begins
expect 200 '"started_from":0,' /status
expect 200 '"steps_per_second":' /status
trains_on
expect 200 '"y":\[[-0-9.e]+\]' /predict -d '{"x": 0.5}'
expect 200 '"y":\[[-0-9.e]+,[-0-9.e]+,[-0-9.e]+\]' /predict -d '0.5 1 -1e-3'

for body in '' 'one' '1 2x' 'nan' '1e99' '{}' '{"x": []}' '{"x": ["a"]}' '{"x": {}}' '{"x": 1e999}' '{"x": [1' '[{"x": 1}]'; do
  expect 400 '"error":' /predict -d "$body"
done
expect 404 '"error":' /
expect 404 '"error":' /status/x
expect 405 '"error":' /predict
expect 405 '"error":' /status -d ''
expect 413 '"error":' /predict -d "$(printf '%020000d' 1)"
expect 431 '"error":' /status -H "X-Long: $(printf '%010000d' 1)"
exec {raw}<>"/dev/tcp/127.0.0.1/$port"
printf 'this is not HTTP\r\n\r\n' >&"$raw"
read -r -t 60 -u "$raw" line && [[ $line = 'HTTP/1.1 400 '* ]] || fail "an invalid request was answered with: ${line:-nothing}"
exec {raw}>&-

exec {idle}<>"/dev/tcp/127.0.0.1/$port"  # an idle connection does not keep the server from ending
trains_on
stop
ended
exec {idle}>&-
events=(run/events.out.tfevents.*)
[ "${#events[@]}" = 1 ] || fail "the session and the evaluation write into ${#events[@]} event files, not one"
[ -s "run/model.ckpt-$last_step.index" ] || fail "there is no checkpoint of step $last_step"
grep -q "model.ckpt-$last_step\"" run/checkpoint || fail "run/checkpoint does not name step $last_step"

start
expect 200 . /predict --retry 60 -d '0'
expect 200 "\"started_from\":$last_step," /status
first_step=$last_step
kill -INT "$pid"
ended
[ "$last_step" -ge "$first_step" ] && [ -s "run/model.ckpt-$last_step.index" ] || fail "Ctrl-C left no checkpoint of step $last_step"

start --steps $((last_step + 10))
first_step=$last_step
ended
[ "$last_step" = $((first_step + 10)) ] || fail "training had to end at step $((first_step + 10)), but ended at $last_step"
if "$program" --port nonsense 2>/dev/null; then fail "an invalid command line was accepted"; fi
trap - EXIT
