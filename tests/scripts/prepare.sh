# SPDX-License-Identifier: Apache-2.0
#
# Functions of examples/run and tests/run: finding and installing packages, configuring, building. Sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
installed=  # the packages that `have` installed

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The package manager of this system; `none` if it is not one of these.
manager=none
for candidate in apt-get dnf pacman; do
  if command -v "$candidate" >/dev/null; then manager=$candidate && break; fi
done

# entries GROUP...: prints the packages of tests/packages.txt for these groups and this package manager, one a line.
entries() {
  local group ending=
  case $manager in dnf | pacman) ending=@$manager ;; esac
  for group in "$@"; do sed -n "s/^$group$ending: *//p" "$root/tests/packages.txt"; done | tr -s ' ' '\n'
}

is_installed() {
  case $manager in
    apt-get) case "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" in ii*) ;; *) return 1 ;; esac ;;
    dnf) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
    pacman) pacman -T "$1" >/dev/null 2>&1 ;;
    none) return 1 ;;
  esac
}

is_offered() {
  case $manager in
    apt-get) [[ $(apt-cache policy "$1" 2>/dev/null) == *'Candidate: '[^\(]* ]] ;;
    dnf) dnf -q list "$1" >/dev/null 2>&1 ;;
    pacman) pacman -Si "$1" >/dev/null 2>&1 ;;
    none) return 1 ;;
  esac
}

# choose TEST ENTRY: prints the first alternative of the entry that passes the test; fails if no alternative passes.
choose() {
  local name
  for name in ${2//|/ }; do
    if "$1" "$name"; then echo "$name" && return 0; fi
  done
  return 1
}

# packages GROUP...: prints the names of the packages of these groups on this system.
packages() {
  local entry
  for entry in $(entries "$@"); do
    choose is_installed "$entry" || choose is_offered "$entry" || echo "${entry%%|*}"
  done
}

# missing ENTRY...: prints the entries without an installed alternative.
missing() {
  local entry
  for entry in "$@"; do choose is_installed "$entry" >/dev/null || echo "$entry"; done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# update_lists, install_packages PACKAGE...: run the package manager of this system.
update_lists() {
  case $manager in
    apt-get) as_root apt-get update -q ;;
    dnf) as_root dnf -q makecache ;;
    pacman) as_root pacman -Sy ;;
  esac
}
install_packages() {
  case $manager in
    apt-get) as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" ;;
    dnf) as_root dnf install -q -y "$@" ;;
    pacman) as_root pacman -S --noconfirm --needed "$@" ;;
  esac
}

# have GROUP...: installs the missing packages of these groups and prints their names; fails if a package is still
# missing afterwards.
have() {
  local absent
  if [ "$manager" = none ]; then
    say "no known package manager here: expecting to find what these packages of Debian hold"
    entries "$@"
    return 0
  fi
  absent=$(missing $(entries "$@"))
  [ -n "$absent" ] || return 0
  say "missing packages:" $absent
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    die "not root, and there is no sudo; as root, install with $manager:" $absent
  fi
  update_lists || echo "updating the lists of packages failed; going on with those at hand" >&2
  installed=$(packages "$@")
  install_packages $installed || true
  absent=$(missing $absent)
  [ -z "$absent" ] || die "could not install:" $absent "(tests/packages.txt names them for this system)"
}

# configure PRESET [CMAKE OPTION...]: configures on the first call, after packages were installed, and if an option
# differs from the cache. Ninja configures again when a CMake file changes.
configure() {
  local preset=$1 option
  shift
  if [ -z "$installed" ] && [ -f "$root/build/$preset/build.ninja" ]; then
    for option in "$@"; do
      grep -q -- "^${option#-D}\$" <(sed -n 's/:[A-Z]*=/=/p' "$root/build/$preset/CMakeCache.txt") || break
      shift
    done
    [ $# != 0 ] || return 0
  fi
  say "configuring $preset"
  if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  (cd "$root" && cmake --preset "$preset" "$@")
}

# build PRESET [TARGET...]: builds the targets, or all targets if none is named.
build() {
  local preset=$1
  shift
  say "building $preset" "$@"
  (cd "$root" && cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"} -- -k 0)  # all errors at once
}
