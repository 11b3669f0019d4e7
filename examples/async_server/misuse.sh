#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sends invalid requests and opens more connections than the server has descriptors for: bash misuse.sh PROGRAM
set -euo pipefail
program=$1
source "$(dirname "$0")/client.sh"

# connect COUNT [TEXT]: opens connections that send only TEXT, and appends their descriptors to `held`.
held=()
connect() {
  local i one
  for ((i = 0; i < $1; ++i)); do
    exec {one}<>"/dev/tcp/127.0.0.1/$port" || fail "connection $i was refused"
    printf '%s' "${2-}" >&"$one" 2>/dev/null || true
    held+=("$one")
  done
}
let_go() {
  local one
  for one in "${held[@]}"; do exec {one}>&-; done
  held=()
}

start --host Train.Example
expect 200 . /predict --retry 60 -d '0'

for host in evil.example localhost.evil.example 127.0.0.1.evil.example '[::2]' ':80'; do
  expect 421 '"error":' /status -H "Host: $host"
done
for host in train.example train.example:80 "LOCALHOST:$port" "[::1]:$port"; do expect 200 '"step":' /status -H "Host: $host"; done
expect 400 '"error":' /status -H 'Host:'
exec {raw}<>"/dev/tcp/127.0.0.1/$port"  # curl cannot send two Host headers
printf 'GET /status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n' >&"$raw"
read -r -t 60 -u "$raw" line && [[ $line = 'HTTP/1.1 400 '* ]] || fail "two hosts were answered with: ${line:-nothing}"
exec {raw}>&-

bearer="Authorization: Bearer $token"
for origin in http://evil.example null "http://127.0.0.1:1" "http://127.0.0.1:$port.evil.example"; do
  expect 403 '"error":' /status -H "Origin: $origin"
  expect 403 '"error":' /stop -d '' -H "$bearer" -H "Origin: $origin"
done
expect 200 '"step":' /status -H "Origin: http://127.0.0.1:$port"

[ "${#token}" = 32 ] || fail "the token has ${#token} characters"
expect 401 '"error":' /stop -d ''
for wrong in 'Bearer' 'Bearer ' "Bearer ${token}0" "Bearer ${token%?}" "Bearer ${token%?}x" "Basic $token" "$token"; do
  expect 401 '"error":' /stop -d '' -H "Authorization: $wrong"
done
trains_on  # the training continues in spite of these requests

connect 150
connect 150 $'POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n0'
expect 200 '"step":' /status --max-time 3
expect 200 '"y":' /predict --max-time 3 -d '0.5'
let_go
stop
ended

descriptors=40
printf 'a token of my own\n' >token
token='a token of my own'
start --token-file token
expect 200 . /predict --retry 60 -d '0'
connect 200
expect 200 '"step":' /status --max-time 3
trains_on
stop
ended
let_go
[ -s "run/model.ckpt-$last_step.index" ] || fail "there is no checkpoint of step $last_step"

printf '\n' >empty
if "$program" --token-file empty 2>/dev/null; then fail "an empty token was accepted"; fi
if "$program" --token-file missing 2>/dev/null; then fail "a missing token file was accepted"; fi
trap - EXIT
