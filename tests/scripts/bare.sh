# SPDX-License-Identifier: Apache-2.0
#
# bash tests/run bare: runs the unchanged commands of README and docs/how_to/build-with-it.md in a new, bare Debian 12.
# Sourced after chroot.sh.

# blocks PAGE: prints a script that writes each block below "<!-- file PATH -->" to that file and runs each block below
# "<!-- run -->".
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
  make_root bookworm
  in_root "apt-get update -q && apt-get install -q -y --no-install-recommends git ca-certificates sudo"
  mkdir "$chroot/opt/clone/trainer"
  awk '/^```cpp/ { inside = 1; next } /^```/ && inside { exit } inside' "$root/README.md" >"$chroot/opt/clone/trainer/trainer.cpp"
  blocks "$root/README.md" >"$chroot/opt/install.sh"
  blocks "$root/docs/how_to/build-with-it.md" >"$chroot/opt/page.sh"
  local script
  for script in install page; do
    say "the commands of $script.sh: README, then docs/how_to/build-with-it.md"
    in_root "set -o pipefail; bash /opt/$script.sh 2>&1 | tee /opt/printed"
    ! grep ': warning: ' "$chroot/opt/printed" || die "these are the warnings that a newcomer sees"
  done
  say "the commands of README's section \"Try it\""
  in_root "bash tests/scripts/newcomer.sh"
}
