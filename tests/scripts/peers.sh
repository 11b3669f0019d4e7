# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tests/run: installs the peers of stepwell, several GiB, and compares stepwell with them.

# run_peers [--turns COUNT] [--memory MIB]: see tests/peers/compare.py. A peer that cannot be installed is missing in the
# tables.
run_peers() {
  local directory=$root/build/peers venv=$root/build/peers/venv package
  have build bench peers
  mkdir -p "$directory"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  for package in tensorflow-cpu torch lightning pytorch-ignite jax orbax-checkpoint; do
    "$venv/bin/python" -m pip --disable-pip-version-check show -q "$package" 2>/dev/null || {
      say "installing $package"
      "$venv/bin/python" -m pip install -q "$package" || echo "peers: $package cannot be installed" >&2
    }
  done
  configure release -DSTEPWELL_BUILD_TESTS=OFF -DSTEPWELL_BUILD_TOOL=OFF -DSTEPWELL_BUILD_BENCHMARKS=ON
  build release stepwell_peer
  say "comparing"
  "$venv/bin/python" "$root/tests/peers/compare.py" --program "$root/build/release/tests/peers/stepwell_peer" \
    --python "$venv/bin/python" --directory "$directory" "$@"
}
