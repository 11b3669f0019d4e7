# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tests/run: groups of processes. A program works with one library of MPI only.

# group_with_mpi LIBRARY: builds the adapter with Open MPI (openmpi) or MPICH (mpich), and runs its tests. Both use the same tree, whose core
# is compiled once: CMake forgets the other library of MPI.
group_with_mpi() {
  local library=$1 tree=group
  say "building with $library"
  cmake -S "$root" -B "$root/build/$tree" -G Ninja "-UMPI*" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DSTEPWELL_WERROR=ON \
    -DSTEPWELL_BUILD_MPI=ON "-DMPI_CXX_COMPILER=$(first_of "mpicxx.$library" mpicxx)" \
    "-DMPIEXEC_EXECUTABLE=$(first_of "mpiexec.$library" mpiexec)" -DSTEPWELL_BUILD_TOOL=OFF
  cmake --build "$root/build/$tree" -j "$jobs" --target unit_mpi mpi_group mpi_job mpi_jobs group
  check "$tree" -R '^(unit_mpi|mpi_.*|example_group.*)$'
}

# The sanitizer does not see how Open MPI, which is not instrumented, orders the accesses of its threads. The option ignore_noninstrumented_modules
# suppresses the races that it would report inside of Open MPI.
group_with_thread_sanitizer() {
  local tree=group-tsan
  say "building with the thread sanitizer"
  cmake -S "$root" -B "$root/build/$tree" -G Ninja "-DCMAKE_CXX_COMPILER=$(first_of clang++-19 clang++)" -DCMAKE_BUILD_TYPE=Debug \
    "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1" -DSTEPWELL_SANITIZE=thread -DSTEPWELL_BUILD_MPI=ON "-DMPI_CXX_COMPILER=$(first_of mpicxx.openmpi mpicxx)" \
    "-DMPIEXEC_EXECUTABLE=$(first_of mpiexec.openmpi mpiexec)" -DSTEPWELL_BUILD_TOOL=OFF -DSTEPWELL_BUILD_EXAMPLES=OFF
  cmake --build "$root/build/$tree" -j "$jobs" --target unit_mpi mpi_group
  TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1 check "$tree" -R '^(unit_mpi|mpi_group_of_[12])$'  # more processes that spin would need minutes
}

# first_of NAME...: prints the path of the first program that is installed. Debian installs several libraries beside each other.
first_of() {
  local name
  for name in "$@"; do command -v "$name" && return 0; done
  die "none of these programs is installed: $*"
}

run_group() {
  have build tests group clang sanitizers
  group_with_mpi openmpi
  group_with_mpi mpich
  say "100,000 random schedules of a simulated group"
  cmake --build "$root/build/group" -j "$jobs" --target unit_group
  STEPWELL_SCHEDULES=100000 "$root/build/group/tests/unit/unit_group" "[schedules]"
  group_with_thread_sanitizer
  run_torch group
}
