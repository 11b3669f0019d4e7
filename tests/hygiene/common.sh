# SPDX-License-Identifier: Apache-2.0
#
# Functions of all checks. A check is called as NAME.sh [ROOT]; it prints every mistake and then exits with code 1.
# Sourced, not run.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${1:-$here/../..}
cd "$root"
mistakes=$(mktemp)
trap 'rm -f "$mistakes"' EXIT

# mistake TEXT...: records a mistake, which finish prints.
mistake() { printf '%s\n' "$*" >>"$mistakes"; }

# files DIRECTORY... -- ENDING...: prints the files below these directories with these endings, except those in build
# trees.
files() {
  local -a directories=() names=()
  while [ "$1" != -- ]; do [ ! -e "$1" ] || directories+=("$1"); shift; done
  shift
  [ ${#directories[@]} != 0 ] || return 0
  while [ $# != 0 ]; do names+=(-o -name "*$1"); shift; done
  find "${directories[@]}" \( -name build -o -name .git -o -name .cache \) -prune -o -type f \( "${names[@]:1}" \) -print | sort
}

# with_details: prints the headers of the input, such as stepwell/base/tensor.hpp, and the headers in detail/ that they include, directly or
# through another one.
with_details() {
  local found='' new
  new=$(sort -u)
  while [ "$new" != "$found" ]; do
    found=$new
    new=$({
      echo "$found"
      echo "$found" | sed 's|^|src/|' | xargs -r grep -hsoE '^#include "stepwell/.*/detail/[^"]*' | sed 's/.*"//' || true
    } | sort -u)
  done
  echo "$found"
}

# Ends the check: prints the mistakes and exits with code 1, or prints that there are none.
finish() {
  if [ -s "$mistakes" ]; then
    sort -u "$mistakes"
    echo "$(basename "$0" .sh): $(sort -u "$mistakes" | wc -l) mistake(s)"
    exit 1
  fi
  echo "$(basename "$0" .sh): nothing to complain about"
}
