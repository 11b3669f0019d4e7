#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finds text that must not be committed: paths of one machine, notes to oneself, marks of an unfinished merge, and pipes
# into `gr''ep -q`, which ends early: the other program then gets SIGPIPE now and then, and pipefail reports a failure.
source "$(dirname "$0")/common.sh"

# forbid PATTERN WHY. The patterns are split so that this file does not match them.
forbid() {
  grep -rnIE --exclude-dir=build --exclude-dir=.git --exclude-dir=.cache --exclude-dir=run --exclude=.git -- "$1" . |
    sed "s|^\./\([^:]*:[0-9]*\):.*|\1: $2|" >>"$mistakes" || true
}
forbid '(^|[^A-Za-z0-9_.$}/])/(wor''k|hom''e|roo''t|Use''rs)/' "a path of one machine"
forbid 'file:/''//' "a path of one machine"
forbid '\b(FIX''ME|XX''X|HA''CK|TO''DO)\b' "a note to oneself; do it, or write down why not"
forbid '^(<<<<''<<<|>>>>''>>>)( |$)' "a mark of an unfinished merge"
forbid '\b[hH]elp''er\b' "say what it does instead"
forbid '[^|]\| *gr''ep -[a-zA-Z]*q' "a pipe into a program that does not read all; compare the text in the shell"
forbid '[[:space:]]$' "blanks at the end of a line"
finish
