# SPDX-License-Identifier: Apache-2.0
#
# Makes a root directory of a Debian suite, copies the committed tree into it, and runs commands there. Sourced after
# prepare.sh. Needs root and the package debootstrap.

# in_root COMMAND: runs the command in the copied tree inside the root directory, without this shell's environment.
in_root() { chroot "$chroot" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -c "cd /opt/clone && $1"; }

leave_root() {
  umount "$chroot/proc" "$chroot/dev/pts" "$chroot/dev" 2>/dev/null
  [ -n "$is_kept" ] || rm -rf --one-file-system "$chroot"
}

# make_root SUITE [DIRECTORY]: sets `chroot`. With DIRECTORY, the root is made there, kept, and used again by later
# calls. Without DIRECTORY, the root is temporary.
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
  mount -t devpts devpts "$chroot/dev/pts"  # some tests open terminals
  cp /etc/resolv.conf /etc/hosts "$chroot/etc/"
  echo force-unsafe-io >"$chroot/etc/dpkg/dpkg.cfg.d/stepwell"  # no fsync for each file
  # The release files of a mirror that is no longer updated are expired.
  echo 'Acquire::Check-Valid-Until "false";' >"$chroot/etc/apt/apt.conf.d/stepwell"
  [ "$suite" != experimental ] || prefer_experimental
  copy_tree
}

# Debian's experimental contains only some packages and is used together with unstable. These settings prefer its
# version of a package.
prefer_experimental() {
  local mirror
  mirror=$(awk '$1 == "deb" { print $2; exit }' "$chroot/etc/apt/sources.list")
  echo "deb $mirror experimental main" >"$chroot/etc/apt/sources.list.d/experimental.list"
  printf 'Package: *\nPin: release a=experimental\nPin-Priority: 600\n' >"$chroot/etc/apt/preferences.d/experimental"
}

# Copies the committed tree. The build directory stays, so that ccache and Ninja decide which parts are compiled again.
copy_tree() {
  find "$chroot/opt/clone" -mindepth 1 -maxdepth 1 -not -name build -exec rm -rf {} +
  git -C "$root" archive HEAD | tar -x -C "$chroot/opt/clone"
}
