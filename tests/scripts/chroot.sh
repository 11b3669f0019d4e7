# SPDX-License-Identifier: Apache-2.0
#
# Makes a root directory of a Debian suite, puts the tree as committed into it, and runs commands there. Sourced after prepare.sh.
# Needs root and the package debootstrap.

# in_root COMMAND: runs it in the clone inside the root directory, without this shell's environment.
in_root() { chroot "$chroot" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -c "cd /opt/clone && $1"; }

leave_root() {
  umount "$chroot/proc" "$chroot/dev" 2>/dev/null
  [ -n "$is_kept" ] || rm -rf --one-file-system "$chroot"
}

# make_root SUITE [DIRECTORY]: sets `chroot`. The root is made in DIRECTORY, or used again if it is there, and kept; without
# DIRECTORY it is temporary.
make_root() {
  local suite=$1 base=$1
  is_kept=${2:-}
  [ "$(id -u)" = 0 ] || die "only root can make a root directory of another system"
  have bare
  [ "$suite" != experimental ] || base=unstable
  chroot=${is_kept:-$(mktemp -d "/var/tmp/stepwell-$suite-XXXXXX")}
  trap leave_root EXIT
  if [ ! -e "$chroot/opt/clone" ]; then
    say "making a root of $base in $chroot"
    mkdir -p "$chroot"
    debootstrap --variant=minbase "$base" "$chroot" >"$chroot.log" || die "debootstrap failed, see $chroot.log"
    mkdir "$chroot/opt/clone"
  fi
  mount -t proc proc "$chroot/proc"
  mount --bind /dev "$chroot/dev"
  cp /etc/resolv.conf "$chroot/etc/resolv.conf"
  echo force-unsafe-io >"$chroot/etc/dpkg/dpkg.cfg.d/stepwell"  # no fsync for each file
  # A mirror that stands still has release files that have expired.
  echo 'Acquire::Check-Valid-Until "false";' >"$chroot/etc/apt/apt.conf.d/stepwell"
  [ "$suite" != experimental ] || prefer_experimental
  copy_tree
}

# Debian's experimental holds a few packages only, for use with unstable: here it wins wherever it has one.
prefer_experimental() {
  local mirror
  mirror=$(awk '$1 == "deb" { print $2; exit }' "$chroot/etc/apt/sources.list")
  echo "deb $mirror experimental main" >"$chroot/etc/apt/sources.list.d/experimental.list"
  printf 'Package: *\nPin: release a=experimental\nPin-Priority: 600\n' >"$chroot/etc/apt/preferences.d/experimental"
}

# The tree as committed. What was built there before stays, for the compiler cache and the dependencies of Ninja to decide.
copy_tree() {
  find "$chroot/opt/clone" -mindepth 1 -maxdepth 1 -not -name build -exec rm -rf {} +
  git -C "$root" archive HEAD | tar -x -C "$chroot/opt/clone"
}
