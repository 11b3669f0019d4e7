# SPDX-License-Identifier: Apache-2.0
#
# The kinds of runs that tests/run offers. Sourced after prepare.sh.
#
# ctest labels select the tests of a run. `long` and `ci` run only in `tests/run ci`. `unsanitized` marks tests that are
# useless under a sanitizer (other compilers' runs, scripts, measurements). `single` marks tests without threads, which
# the thread sanitizer skips.

# check PRESET [CTEST OPTION...]: runs ctest and keeps its closing lines for the summary.
check() {
  local preset=$1 code=0
  shift
  say "testing $preset" "$@"
  (cd "$root" && $without_aslr ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error "$@") |
    tee "$root/build/$preset/ctest.log" || code=$?
  say_skipped "$root/build/$preset/Testing/Temporary/LastTest.log"
  return "$code"
}

# say_skipped LOG: prints the parts that tests skipped, with counts. ctest prints nothing about skips inside tests that
# pass.
say_skipped() {
  local reasons
  reasons=$(sed -n 's/^ *skipped: *//Ip' "$1" | sort | uniq -c)
  [ -z "$reasons" ] || printf '\n== SKIPPED, and how often\n%s\n' "$reasons"
}

run_tests() {
  have build examples tool tests
  configure dev
  build dev
  check dev -LE '^(long|ci)$'
}

# run_with COMPILER [libc++]: builds the tests with another compiler, without optimisation, and runs them. This is the fastest
# way to see that everything compiles.
run_with() {
  local compiler=${1:-} tree
  if [ "${2:-}" = libc++ ]; then
    [ "$compiler" = clang++ ] || die "with: libc++ is built with clang++ only"
    source "$root/tests/scripts/libcxx.sh"
    run_with_libcxx
    return
  fi
  [ -n "$compiler" ] || die "with: say which compiler, such as: bash tests/run with clang++"
  tree=with-${compiler##*/}
  have build examples tool tests
  if [ "$compiler" = clang++ ]; then
    have clang
    ! command -v clang++-19 >/dev/null || compiler=clang++-19
  fi
  configure dev -B "$root/build/$tree" "-DCMAKE_CXX_COMPILER=$compiler" -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DSTEPWELL_WERROR=ON
  build "$tree"
  check "$tree" -LE '^(long|ci)$'
}

run_packages() { packages "$@"; }

# Builds all targets of all presets. Other kinds of runs execute their tests.
run_presets() {
  have build examples tool tests clang sanitizers
  local preset
  for preset in $(cd "$root" && cmake --list-presets | sed -n 's/^ *"\(.*\)".*/\1/p'); do
    configure "$preset"
    build "$preset"
  done
}

# run_release [REGEX]: builds and runs the tests with the preset release, or only the test programs that match.
run_release() {
  have build examples tool tests
  configure release -DSTEPWELL_BUILD_TESTS=ON -DSTEPWELL_BUILD_TOOL=ON  # the kind bench turns them off
  if [ -z "${1:-}" ]; then
    build release
    check release -LE '^(long|ci)$'
  else
    build release build.ninja
    build release $(programs_of release -R "$1")
    check release -R "$1"
  fi
}

run_bench() {
  have build examples bench
  configure release -DSTEPWELL_BUILD_TESTS=OFF -DSTEPWELL_BUILD_TOOL=OFF -DSTEPWELL_BUILD_BENCHMARKS=ON
  build release
  local program
  for program in "$root"/build/release/tests/bench/bench_*; do
    [ -f "$program" ] && [ -x "$program" ] || continue
    say "${program##*/}"
    "$program" "$@"
  done
}

# run_fuzz [SECONDS]: runs each fuzz target for this time, starting from the inputs that earlier runs found.
run_fuzz() {
  have build tool clang sanitizers
  local seconds=${1:-60} tree=$root/build/fuzz target targets="fuzz_inspect fuzz_events fuzz_directory fuzz_formats fuzz_reader fuzz_weights fuzz_graph fuzz_board"
  say "building the fuzz targets"
  cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_CXX_COMPILER="${CXX:-clang++-19}" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" \
    -DSTEPWELL_SANITIZE=address,undefined,fuzzer-no-link -DSTEPWELL_BUILD_FUZZERS=ON -DSTEPWELL_BUILD_BOARD=ON -DSTEPWELL_BUILD_TENSORFLOW=ON -DSTEPWELL_BUILD_TESTS=OFF -DSTEPWELL_BUILD_EXAMPLES=OFF
  cmake --build "$tree" -j "$jobs" --target $targets
  for target in $targets; do
    say "$target, for $seconds s"
    mkdir -p "$tree/corpus/$target"
    "$tree/tests/fuzz/$target" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$tree/corpus/$target-" "$tree/corpus/$target"
  done
}

# run_delays [SEED]: runs the tests that have several threads. Random delays make other threads the fastest ones.
run_delays() {
  have build tool tests
  configure dev
  build dev all delays
  # The threads sleep most of the time: six tests run together on two cores.
  jobs=6 LD_PRELOAD=$root/build/dev/tests/delays/libdelays.so STEPWELL_DELAY_SEED=${1:-1} check dev -LE '^(long|ci|unsanitized|single)$'
}

# run_kills [COUNT]: kills a small training program COUNT times. After each kill, all views of its directory must agree.
# run_kills sweep: instead, each file operation of that program is killed, fails, or loses the power of the machine.
run_kills() {
  have build tool tests
  configure dev
  build dev fault_random_kills train_and_be_killed
  if [ "${1:-}" = sweep ]; then
    say "a fault at each file operation of a training"
    STEPWELL_SWEEP_STRIDE=1 "$root/build/dev/tests/fault/fault_random_kills" "[sweep]"
  else
    say "killing a training ${1:-2000} times"
    STEPWELL_KILLS=${1:-2000} "$root/build/dev/tests/fault/fault_random_kills" "[kill]"
  fi
}

# run_crafted [COUNT [SEED [FIRST]]]: makes COUNT crafted files and reads each with every reader of such files.
run_crafted() {
  have build tool tests
  configure dev
  build dev crafted_files
  "$root/build/dev/tests/fault/crafted_files" "${@:-10000}"
}

# torch_environment: prints <site-packages>/torch of a virtual environment of Python. Makes it below build/, or takes STEPWELL_TORCH_VENV.
# PyPI's torch is built for CUDA and has several GB of dependencies. Its part for the CPU needs only two small libraries of CUDA.
torch_environment() {
  local environment=${STEPWELL_TORCH_VENV:-$root/build/torch-venv} libraries
  if ! ls "$environment"/lib/python3*/site-packages/torch/share/cmake/Torch/TorchConfig.cmake >/dev/null 2>&1; then
    python3 -m venv "$environment" >&2 && "$environment/bin/pip" install -q --no-deps torch >&2 || die "torch cannot be installed in $environment; this kind of tests needs it"
  fi
  libraries=$("$environment/bin/python" - <<'END'
import importlib.metadata, re
cuda = [found[1] for one in importlib.metadata.requires("torch") if (found := re.match(r"cuda-toolkit\b.*==(\d+)", one))]
print(*[f"{name}=={cuda[0]}.*" for name in ("nvidia-cuda-runtime", "nvidia-cuda-cupti") if cuda])
END
  )
  [ -z "$libraries" ] || "$environment/bin/pip" install -q --no-deps $libraries >&2 || die "$libraries cannot be installed in $environment"
  echo "$environment"/lib/python3*/site-packages/torch
}

# Prints the folder of LibTorch, for -DCMAKE_PREFIX_PATH.
run_torch_package() {
  have weights >&2
  torch_environment
}

# run_torch [pip|group]: the adapter with the system's LibTorch, or with PyPI's, or only groups with the system's. LibTorch is large, and a
# file that includes it compiles for 30 s. The adapter therefore has its own builds and its own kind of run. PyPI's torchrun needs several GB of
# CUDA: STEPWELL_TORCHRUN names it if it is there. Otherwise the scenario with torchrun is skipped.
run_torch() {
  local tree=torch place= torchrun= programs="unit_torch torch_late_device convnet libtorch_digits libtorch_images libtorch_words libtorch_group torch_group_process"
  local tests="unit_torch|torch_late_device|example_convnet.*|example_libtorch_.*|torch_group|consume/moved"
  case "${1:-}" in
    '' | group)
      have build tests torch
      [ -z "${1:-}" ] || programs="libtorch_group torch_group_process" tests=torch_group
      # That of the same LibTorch. Version 1.13 with Python 3.11 fails with its default of -r and -t: this redirects the output of no process.
      torchrun="/usr/bin/torchrun -r 9:3 -t 9:3"
      ;;
    pip)
      have build tests weights
      tree=torch-pip
      place=$(torch_environment)
      ;;
    *) die "torch: the options are pip and group" ;;
  esac
  say "building with LibTorch ${place:+in $place}"
  cmake -S "$root" -B "$root/build/$tree" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DSTEPWELL_WERROR=ON \
    -DSTEPWELL_BUILD_TORCH=ON -DSTEPWELL_BUILD_TOOL=OFF -DSTEPWELL_BUILD_BOARD=OFF ${place:+"-DCMAKE_PREFIX_PATH=$place"}
  cmake --build "$root/build/$tree" -j "$jobs" --target $programs
  TEST_TORCHRUN=${STEPWELL_TORCHRUN:-$torchrun} check "$tree" -R "^($tests)\$"
}

# tensorflow_environment: prints a virtual environment of Python with TensorFlow. Makes it below build/, or takes STEPWELL_TENSORFLOW_VENV.
# Fails if the package cannot be installed: without it nothing of this kind is tested.
tensorflow_environment() {
  local environment=${STEPWELL_TENSORFLOW_VENV:-$root/build/tensorflow-venv}
  if ! "$environment/bin/python" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("tensorflow") is None)' 2>/dev/null; then
    python3 -m venv "$environment" >&2 && "$environment/bin/pip" install -q tensorflow-cpu >&2 ||
      die "tensorflow-cpu cannot be installed in $environment; this kind of tests needs it"
  fi
  echo "$environment"
}

run_tensorflow_package() {
  have tensorflow
  tensorflow_environment
}

# run_tensorflow [KILLS]: run_graph is killed KILLS times for each graph of make.py, by default 50 times.
# The adapter for TensorFlow needs nothing of TensorFlow to build. Its tests run against a stub library, and then against the real one.
run_tensorflow() {
  local environment library tree=$root/build/release graphs=$root/build/tensorflow-graphs torch=OFF
  have build examples tests tensorflow
  environment=$(tensorflow_environment)
  if [ -n "$(entries torch)" ]; then have torch && torch=ON; fi
  say "building the adapter for TensorFlow"
  configure release -DSTEPWELL_BUILD_TESTS=ON -DSTEPWELL_BUILD_TENSORFLOW=ON -DSTEPWELL_BUILD_TORCH=$torch
  build release unit_tensorflow unit_tensorflow_allocations real_tensorflow run_graph fit_line cluster tensorflow_digits
  check release -R "^unit_tensorflow(_allocations)?\$"
  library=$(echo "$environment"/lib/python3*/site-packages/tensorflow)
  say "with TensorFlow in $library"
  rm -rf "$graphs" && mkdir -p "$graphs"
  STEPWELL_TENSORFLOW=$library STEPWELL_KEEP_ESTIMATOR=$graphs/estimator "$tree/tests/unit/real_tensorflow"
  if [ "$torch" = ON ]; then
    build release real_tensorflow_beside_torch
    STEPWELL_TENSORFLOW=$library "$tree/tests/unit/real_tensorflow_beside_torch"
  else
    say "SKIPPED: LibTorch and TensorFlow in one process; tests/packages.txt names no package of LibTorch for this system"
  fi
  STEPWELL_TENSORFLOW=$library "$environment/bin/python" "$root/tests/tensorflow/compare.py" "$root/tests/data/tensorflow/graph" \
    "$tree/examples/tensorflow/run_graph" "$graphs" --kills "${1:-50}" --estimator "$graphs/estimator"
  (cd "$graphs" && "$environment/bin/python" "$root/examples/tensorflow/fit_line.py" line.meta &&
    STEPWELL_TENSORFLOW=$library "$tree/examples/tensorflow/fit_line" line.meta &&
    STEPWELL_TENSORFLOW=$library bash "$root/examples/tensorflow/cluster.sh" "$tree/examples/tensorflow/cluster")
  STEPWELL_TENSORFLOW=$library python3 "$root/tests/tensorflow/cluster.py" "$tree/examples/tensorflow/cluster" "$graphs"
  STEPWELL_TENSORFLOW=$library python3 "$root/tests/tensorflow/digits.py" "$tree/examples/tensorflow/digits" "$graphs/digits"
}

# run_weights [big]: runs docs/how_to/weights-to-and-from-python.md, and compares arrays of all types in both directions. torch of PyPI needs
# several GB with its libraries.
run_weights() {
  local environment=${STEPWELL_WEIGHTS_VENV:-$root/build/weights-venv} tree=$root/build/dev big=
  [ "${1:-}" != big ] || big=--big
  have build tool tests weights
  if ! "$environment/bin/python" -c 'import torch, safetensors, numpy' 2>/dev/null; then
    python3 -m venv "$environment" && "$environment/bin/pip" install -q numpy safetensors ml_dtypes torch ||
      die "torch, safetensors, ml_dtypes and numpy cannot be installed in $environment; this kind of tests needs them"
  fi
  configure dev
  build dev stepwell_tool docs_docs_how_to_weights_to_and_from_python_1
  rm -rf "$root/build/weights" && mkdir -p "$root/build/weights"
  "$environment/bin/python" "$root/tests/weights/compare.py" "$tree/src/tool/stepwell" \
    "$tree/tests/docs/docs_docs_how_to_weights_to_and_from_python_1" "$root/docs/how_to/weights-to-and-from-python.md" "$root/build/weights" $big
}

# Runs the tests with TensorFlow's own library under the address sanitizer. The sanitizer rejects RTLD_DEEPBIND, without which TensorFlow
# would call the functions of this program's protobuf. So protobuf is linked statically and its functions are not exported.
run_tensorflow_address() {
  local environment library tree=$root/build/tensorflow-address
  have build tests tensorflow
  environment=$(tensorflow_environment)
  library=$(echo "$environment"/lib/python3*/site-packages/tensorflow)
  say "building the adapter for TensorFlow with the address sanitizer"
  cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DSTEPWELL_SANITIZE=address \
    -DSTEPWELL_BUILD_TENSORFLOW=ON -DSTEPWELL_BUILD_TOOL=OFF -DSTEPWELL_BUILD_EXAMPLES=OFF -DProtobuf_USE_STATIC_LIBS=ON \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--exclude-libs,ALL
  cmake --build "$tree" -j "$jobs" --target real_tensorflow
  STEPWELL_TENSORFLOW=$library ASAN_OPTIONS=detect_leaks=0 "$tree/tests/unit/real_tensorflow"
}

# Prints the cost of a monitored step beside a bare loop, and beside Python's MonitoredTrainingSession.
run_tensorflow_bench() {
  local environment library graphs=$root/build/tensorflow-graphs mlp=$root/tests/data/tensorflow/graph/mlp/model.ckpt-0.meta
  have build examples tests bench tensorflow
  environment=$(tensorflow_environment)
  library=$(echo "$environment"/lib/python3*/site-packages/tensorflow)
  configure release -DSTEPWELL_BUILD_TENSORFLOW=ON -DSTEPWELL_BUILD_BENCHMARKS=ON
  build release bench_tensorflow
  mkdir -p "$graphs"
  "$environment/bin/python" "$root/tests/tensorflow/bench.py" "$graphs/regression.meta" "$graphs/large.meta"
  export STEPWELL_TENSORFLOW=$library
  # The memory layout of a process makes its steps a little faster or slower, so nine processes are measured.
  {
    for _ in 1 2 3 4 5 6 7 8; do "$root/build/release/tests/bench/bench_tensorflow" "$mlp"; done
    "$root/build/release/tests/bench/bench_tensorflow" "$mlp" "$graphs/regression.meta" "$graphs/large.meta"
  } | tee "$graphs/printed"
  say "median difference of 9 processes: $(sed -n 's/.*difference \([-0-9.]*\) us.*/\1/p' "$graphs/printed" | sort -g | sed -n 5p) us"
}

# sources: prints all C++ files of the tree.
sources() { find "$root"/{src,tests,examples,modules,conan} \( -name '*.[ch]pp' -o -name '*.cppm' \) -not -path '*/build/*' -print0; }
layout() { sources | xargs -0 clang-format-19 --dry-run -Werror; }
spelling() { (cd "$root" && codespell); }
# Runs clang-tidy on the library, its public headers, and the examples. The headers generated from .proto files must
# exist first.
tidy() {
  # Not a unity build: it would hide the sources. clang-tidy does not know each option of g++.
  configure dev -B "$root/build/tidy" -DCMAKE_UNITY_BUILD=OFF && build tidy stepwell_proto stepwell_tensorflow_proto &&
    (cd "$root" && run-clang-tidy-19 -quiet -p build/tidy -j "$jobs" -extra-arg=-Wno-unknown-warning-option '/(src|examples)/[^.]*\.cpp$')
}

run_docs() {
  have build docs
  say "reference"
  mkdir -p "$root/build/docs"
  # Doxygen 1.9 does not follow specialisations of templates of other libraries; every other complaint is an error.
  (cd "$root/docs" && doxygen Doxyfile 2>&1) | tee "$root/build/docs/log"
  if grep -E '(warning|error):' "$root/build/docs/log" | grep -vE "class std::|symbol '[^']*ranges::"; then
    die "the comments of the headers need mending"
  fi
  echo "build/docs/html/index.html"
}

# Builds the site from nothing, checks its links, and looks at all pages and at the search in Chromium.
run_site() {
  have site browser
  rm -rf "$root/build/site-venv"
  bash "$root/docs/build"
  say "site: in Chromium"
  python3 "$root/tests/site/check_site.py" "$root/build/site"
}

# programs_of PRESET [CTEST OPTION...]: prints the test programs among the selected tests; other programs need not be
# built. A test that is a script has no target of its name. Several tests of pages share one program, which their command names.
programs_of() {
  local preset=$1
  shift
  {
    (cd "$root" && ctest --test-dir "build/$preset" -N "$@") |
      sed -n 's/^ *Test *#[0-9]*: //p' | sed 's/^example_//; s/^portable\/\(.*\)/\1_portable/'
    (cd "$root" && ctest --test-dir "build/$preset" --show-only=json-v1 "$@") | sed -n 's|^ *"-DPROGRAM=.*/\(docs_[^/"]*\)".*|\1|p' | sort -u
  } | grep -xFf <(cmake --build "$root/build/$preset" --target help | sed -n 's/: phony$//p')
}

# sanitized PRESET [CTEST OPTION...]: builds and runs the selected test programs under a sanitizer.
sanitized() {
  local preset=$1
  shift
  configure "$preset" &&
    build "$preset" build.ninja &&  # a new test is not in the list of programs before CMake has run again
    build "$preset" $(programs_of "$preset" "$@") &&
    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1 \
      UBSAN_OPTIONS=print_stacktrace=1 \
      TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 check "$preset" "$@"
}

long_kinds() { configure dev && build dev && check dev -L '^(long|ci)$'; }
address_and_undefined() { sanitized asan -LE '^(ci|unsanitized|long)$'; }
awaited_with_gcc() { sanitized asan-gcc -L '^awaited$' -LE '^ci$'; }  # g++ 12 miscompiles some coroutines
threads() { sanitized tsan -LE '^(ci|unsanitized|single|long)$'; }

# Clang checks that each access to a guarded member holds its lock, in the sources that use base/detail/locks.hpp and in their headers. It must
# complain about a source from which the locks were removed. The step tidy has made the headers of .proto files.
locks() {
  local clang="clang++-19 -std=c++20 -fsyntax-only -Wno-everything -Werror=thread-safety -I. -isystem $root/build/tidy/generated"
  say "locks"
  (
    cd "$root/src" && grep -rlE --include='*.cpp' 'mutex_lock|STEPWELL_GUARDED_BY' stepwell | xargs -P "$jobs" -n 1 $clang &&
      {
        grep -rl --include='*.hpp' --exclude=locks.hpp STEPWELL_GUARDED_BY stepwell | sed 's/.*/#include "&"/'
        echo 'template class stepwell::data::bounded_queue<int, stepwell::data::detail::fifo_store<int>>;'
      } | $clang -x c++ -
  ) || return
  if (cd "$root/src" && sed '/mutex_lock lock/d' stepwell/base/trace.cpp | $clang -x c++ - 2>/dev/null); then
    die "clang does not find that a lock was removed"
  fi
}

# step NAME: runs the function NAME (whose commands are chained by &&), and records its outcome and its duration.
step() {
  local name=$1 begun=$SECONDS outcome=passed closing=
  rm -f "$root"/build/{dev,asan,tsan,asan-gcc}/ctest.log
  "$name" || outcome=FAILED
  closing=$(cat "$root"/build/{dev,asan,tsan,asan-gcc}/ctest.log 2>/dev/null | grep 'tests passed' || true)
  summary+=$(printf '%-22s %-7s %5d s  %s' "$name" "$outcome" "$((SECONDS - begun))" "$closing")$'\n'
  [ "$outcome" = passed ] || failed=1
}

# steps NAME...: runs each step and prints a summary of all outcomes.
steps() {
  summary= failed=0
  have build examples tool tests clang sanitizers
  local name
  for name in "$@"; do step "$name"; done
  say "summary"
  printf '%s' "$summary"
  return "$failed"
}
run_ci() { have lint && steps layout spelling run_docs tidy locks long_kinds address_and_undefined threads awaited_with_gcc; }
run_lint() { have lint && steps layout spelling run_docs tidy locks; }
run_long() { steps long_kinds; }
run_address() { steps address_and_undefined; }
run_threads() { steps threads; }

# The thread sanitizer of g++ 12 cannot place its shadow memory if the kernel randomises addresses over 32 bits.
without_aslr=
if setarch "$(uname -m)" -R true 2>/dev/null; then without_aslr="setarch $(uname -m) -R"; fi
