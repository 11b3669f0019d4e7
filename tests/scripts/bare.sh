# SPDX-License-Identifier: Apache-2.0
#
# bash tests/run bare: README's and docs/how_to/build-with-it.md's commands, as they stand there, in a bare Debian 12 that is made
# for it. Sourced after prepare.sh. Needs root and the package debootstrap. The tree as committed is what is tried.

# in_root COMMAND...: there, in the clone, and without what this shell has set.
in_root() { chroot "$bare" /usr/bin/env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -c "cd /opt/clone && $1"; }

make_bare_root() {
  bare=$(mktemp -d /tmp/stepwell-bare-XXXXXX)
  trap 'umount "$bare/proc" "$bare/dev" 2>/dev/null; rm -rf --one-file-system "$bare"' EXIT
  debootstrap --variant=minbase bookworm "$bare" >"$bare.log" || die "debootstrap failed, see $bare.log"
  mount -t proc proc "$bare/proc"
  mount --bind /dev "$bare/dev"
  cp /etc/resolv.conf "$bare/etc/resolv.conf"
  mkdir "$bare/opt/clone"
  in_root "apt-get update -q && apt-get install -q -y --no-install-recommends git ca-certificates sudo"
  git -C "$root" archive HEAD | tar -x -C "$bare/opt/clone"
}

# blocks PAGE: a script that writes each block below "<!-- file PATH -->" to that file, and runs each below "<!-- run -->".
blocks() {
  echo 'set -euxo pipefail'
  awk '
    /^<!-- run -->$/ { how = "run"; next }
    /^<!-- file .* -->$/ { how = "file"; path = $3; next }
    /^```/ && inside { if (inside == "file") print "END_OF_BLOCK"; inside = ""; next }
    /^```/ { inside = how != "" ? how : "other"; how = ""
      if (inside == "file") { print "mkdir -p $(dirname " path "); cat >" path " <<\"END_OF_BLOCK\"" }
      next }
    inside == "run" || inside == "file"' "$1"
}

run_bare() {
  [ "$(id -u)" = 0 ] || die "a bare root can be made by root only"
  have bare
  make_bare_root
  mkdir "$bare/opt/clone/trainer"
  awk '/^```cpp/ { inside = 1; next } /^```/ && inside { exit } inside' "$root/README.md" >"$bare/opt/clone/trainer/trainer.cpp"
  blocks "$root/docs/how_to/build-with-it.md" >"$bare/opt/page.sh"
  say "the commands of docs/how_to/build-with-it.md"
  in_root "bash /opt/page.sh"
  say "bash examples/run --run-dir run"
  in_root "bash examples/run --run-dir run"
}
