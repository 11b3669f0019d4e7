#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compile_time.sh [RUNS]: measures the processor time to compile README's program at -O0, with and without a precompiled
# header, compared with an empty program that includes <torch/torch.h> (if LibTorch is installed) and with one that
# includes <stepwell/async.hpp>. Prints the medians of RUNS (5) alternating compilations. Then, if clang 19 is installed,
# prints the headers that take this time.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
runs=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

awk '/^```cpp/ { inside = 1; next } /^```/ && inside { exit } inside' "$root/README.md" >quick_start.cpp
cp quick_start.cpp precompiled.cpp
printf '#include <stepwell/async.hpp>\nint main() {}\n' >async.cpp
printf '#include <torch/torch.h>\nint main() {}\n' >torch.cpp
programs="quick_start precompiled async"
for torch in /usr/include/torch/csrc/api/include ${TORCH_INCLUDE:-}; do
  [ ! -f "$torch/torch/torch.h" ] || { programs="$programs torch"; torch_flags="-isystem $torch"; }
done

# The directory with the precompiled header comes before the headers of stepwell.
mkdir -p with_header/stepwell
printf '#include "%s/src/stepwell/stepwell.hpp"\n' "$root" >all.hpp
"${CXX:-g++}" -std=c++20 -O0 -I"$root/src" -x c++-header all.hpp -o with_header/stepwell/stepwell.hpp.gch

# seconds PROGRAM: prints the user and system time of one compilation.
seconds() {
  local TIMEFORMAT='%U %S' first=
  [ "$1" != precompiled ] || first=-Iwith_header
  { time "${CXX:-g++}" -std=c++20 -O0 $first -I"$root/src" ${torch_flags:-} -c "$1.cpp" -o "$1.o" 2>"$1.log"; } 2>&1 | awk '{ print $1 + $2 }'
}
median() { sort -n "$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

for ((run = 0; run < runs; ++run)); do
  for program in $programs; do seconds "$program" >>"$program.times"; done
done
for program in $programs; do
  printf '%-12s %6.2f s  (median of %s: %s)\n' "$program" "$(median "$program.times")" "$runs" "$(sort -n "$program.times" | paste -sd' ')"
done
if [[ $programs == *torch ]]; then
  awk -v ours="$(median quick_start.times)" -v theirs="$(median torch.times)" 'BEGIN { printf "quick_start is %.0f %% of torch\n", 100 * ours / theirs }'
fi

command -v clang++-19 >/dev/null || exit 0
clang++-19 -std=c++20 -O0 -ftime-trace -ftime-trace-granularity=1000 -I"$root/src" -c quick_start.cpp -o traced.o
# In the trace each header's "b" is followed by its "e". Included headers are nested inside the headers that include
# them.
tr '{' '\n' <traced.json | awk -F'"' '
  /"name":"Source"/ { match($0, /"ts":[0-9]+/); at = substr($0, RSTART + 5, RLENGTH - 5) }
  /"name":"Source"/ && /"ph":"b"/ { begun = at; next }
  /"name":"Source"/ && /"ph":"e"/ { print begun, at - begun, header; next }
  /^"detail":/ { header = $4 }' | sort -k1,1n -k2,2nr | awk '
  { while (depth && $1 >= end[depth]) --depth
    name = $3; foreign = name !~ /\/stepwell\//
    if (depth) { own[at[depth]] -= $2 }
    own[name] += $2
    if (foreign && (depth == 0 || at[depth] ~ /\/stepwell\//)) brought[name] += $2
    at[++depth] = name; end[depth] = $1 + $2 }
  END {
    for (name in brought) printf "brought %7.0f ms  %s\n", brought[name] / 1000, name
    for (name in own) if (name ~ /\/stepwell\//) printf "own     %7.0f ms  %s\n", own[name] / 1000, name
  }' >headers
sed -i "s|$root/src/||; s|[^ ]*/include/||; s|c++/12/||" headers
printf '\nother headers, by the header of ours that comes to them first, with all they include (clang 19):\n'
grep ^brought headers | sort -k2,2nr | sed -n 1,15p | cut -c9-
printf 'headers of ours, without what they include:\n'
grep ^own headers | sort -k2,2nr | sed -n 1,8p | cut -c9-
