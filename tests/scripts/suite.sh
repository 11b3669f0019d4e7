# SPDX-License-Identifier: Apache-2.0
#
# bash tests/run suite NAME [COMPILER...]: makes a root directory with the packages of a Debian suite, and builds the
# library, the tool, the examples and the tests in it, then runs the tests. Suites: bookworm, trixie, testing,
# experimental (unstable with the newest packages of experimental). Compilers: g++ and clang++, unless others are named.
# Sourced after chroot.sh.
# STEPWELL_ROOTS=DIRECTORY keeps the root directory there, with ccache, which shortens the next run.

run_suite() {
  local suite=${1:-} compiler outcome
  [ -n "$suite" ] || die "suite: say which, such as: bash tests/run suite trixie"
  shift
  [ $# != 0 ] || set -- g++ clang++
  make_root "$suite" "${STEPWELL_ROOTS:+$STEPWELL_ROOTS/$suite}"
  in_root "apt-get update -q && apt-get install -q -y --no-install-recommends ca-certificates ${is_kept:+ccache}"
  summary= failed=0
  for compiler in "$@"; do
    outcome=passed
    in_root "bash tests/run with $compiler" || outcome=FAILED failed=1
    summary+="$suite with $compiler: $outcome. $(grep 'tests passed' "$chroot/opt/clone/build/with-$compiler/ctest.log" 2>/dev/null || true)"$'\n'
  done
  say "summary"
  printf '%s' "$summary"
  return "$failed"
}
