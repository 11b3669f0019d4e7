# SPDX-License-Identifier: Apache-2.0
#
# bash tests/run arm64: compiles the library for arm64 Linux with Debian's g++ and runs the tests of its lower layers with QEMU. Sourced after
# kinds.sh.

arm64_root=$root/build/arm64-root

# arm64_apt COMMAND [OPTION...]: runs a program of apt for arm64. It reads the sources of this system, and has its own lists and an own
# directory of packages, of which none is installed. The system itself is not changed.
arm64_apt() {
  local state=$root/build/arm64-apt command=$1
  shift
  mkdir -p "$state/state/lists/partial" "$state/cache/archives/partial"
  : >"$state/status"
  "$command" -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$state/state" -o "Dir::State::status=$state/status" \
    -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=root "$@"
}

# make_arm64_root: unpacks the arm64 packages of the libraries, with everything that they need, into $arm64_root. Does nothing if this was
# done for the same packages.
make_arm64_root() {
  local names link
  names=$(packages build examples tests | grep -E -- '-dev$|^catch2$' | sort -u)
  [ "$(cat "$arm64_root/packages" 2>/dev/null)" != "$names" ] || return 0
  say "downloading the arm64 packages of" $names
  rm -rf "$arm64_root" "$root/build/arm64-apt/cache/archives"
  arm64_apt apt-get update || echo "updating some lists of packages failed; going on with the others" >&2
  arm64_apt apt-get install -y --no-install-recommends --download-only $names || die "could not download the packages"
  mkdir -p "$arm64_root"
  for package in "$root"/build/arm64-apt/cache/archives/*.deb; do dpkg -x "$package" "$arm64_root"; done
  # An absolute link refers to a file of this directory.
  find "$arm64_root" -type l -lname '/*' -printf '%P\t%l\n' | while IFS=$'\t' read -r link target; do
    ln -sfr "$arm64_root$target" "$arm64_root/$link"
  done
  # Debian makes these links when it installs OpenBLAS, and the packages do not have them.
  ln -s openblas-pthread/libopenblas.so openblas-pthread/libopenblas.so.0 "$arm64_root/usr/lib/aarch64-linux-gnu"
  ln -s openblas-pthread/cblas.h openblas-pthread/openblas_config.h "$arm64_root/usr/include/aarch64-linux-gnu"
  # The files of Snappy for CMake name the files of the package by their full paths.
  sed -i "s|\"/usr\([/\"]\)|\"$arm64_root/usr\1|" "$arm64_root"/usr/lib/aarch64-linux-gnu/cmake/Snappy/*.cmake
  echo "$names" >"$arm64_root/packages"
}

# train_fixed DIRECTORY COMMAND...: runs the program fixed_training. Its event file names the process, and its other files are left.
train_fixed() {
  rm -rf "$1"
  mkdir -p "$1"
  "${@:2}" "$1"
  rm "$1"/events.out.tfevents.*
}

# run_arm64: the tests of the lower layers, a training that is killed and resumed, and the files of a training, compared with those of this
# machine's own architecture. Everything arm64 runs under emulation.
run_arm64() {
  local programs="unit_base unit_kernel unit_format_events unit_format_checkpoint unit_checkpoint unit_checkpoint_allocations unit_hooks
    unit_best"
  local arm64=$root/build/arm64 emulator="qemu-aarch64-static -L $arm64_root"
  have build examples tests arm64
  make_arm64_root
  configure dev
  build dev fixed_training
  configure dev -B "$arm64" "-DCMAKE_TOOLCHAIN_FILE=$root/tests/arm64/toolchain.cmake" \
    -DSTEPWELL_BUILD_TOOL=OFF -DSTEPWELL_BUILD_EIGEN=OFF -DSTEPWELL_BUILD_XTENSOR=OFF -DSTEPWELL_BUILD_TENSORFLOW=OFF
  build arm64 $programs fixed_training fault_kill_and_resume
  check arm64 -R "^($(echo $programs | tr ' ' '|'))\$"
  # The other cases of this program repeat whole trainings, which take minutes each under emulation.
  say "killing and resuming a training"
  $emulator "$arm64/tests/fault/fault_kill_and_resume" "killed at random instants and started again*"
  say "a training, here and on arm64: the bytes of its data, index and state files"
  train_fixed "$arm64/fixed/here" "$root/build/dev/tests/arm64/fixed_training"
  train_fixed "$arm64/fixed/arm64" $emulator "$arm64/tests/arm64/fixed_training"
  diff -r "$arm64/fixed/here" "$arm64/fixed/arm64" || die "the files of $arm64/fixed/here and $arm64/fixed/arm64 differ"
  (cd "$arm64/fixed/arm64" && find . -type f | sort | xargs sha256sum)
  say "SKIPPED on arm64: the other test programs. QEMU emulated the processor; nothing ran on arm64 hardware"
}
