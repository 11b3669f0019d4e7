#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks that modules/stepwell.cppm exports exactly the names that the public headers declare for users, each once, and
# that it includes every public header.
source "$(dirname "$0")/common.sh"
unit=modules/stepwell.cppm

headers() { sed -n '/STEPWELL_PUBLIC_HEADERS/,/)/s/^ *\(stepwell\/.*\.hpp\))*$/\1/p' src/headers.cmake; }
declared() { headers | sed 's|^|src/|' | xargs -r awk -f "$here/public_names.awk" | sort -u; }
exported() { sed -n 's/^using \(stepwell::.*\);$/\1/p' "$unit"; }

[ -f "$unit" ] || { mistake "$unit: is missing"; finish; }
while read -r name; do mistake "$unit: does not export $name"; done < <(comm -23 <(declared) <(exported | sort -u))
while read -r name; do mistake "$unit: exports $name, which no public header declares"; done < <(comm -13 <(declared) <(exported | sort -u))
while read -r name; do mistake "$unit: exports $name twice"; done < <(exported | sort | uniq -d)
while read -r header; do
  grep -qxF "#include \"$header\"" "$unit" || mistake "$unit: does not include $header"
done < <(headers | grep -vx stepwell/stepwell.hpp)
finish
