#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks which folders include other libraries. Asio: coro, io, board, the async_*.hpp headers of session and training, and
# files that declare an async_ function. xsimd: kernel. Protobuf: the .cpp files of format and tensorflow.
# Eigen, xtensor, LibTorch and MPI: their own adapters. Beast: the server of the board. Headers have no test for NaN but that of their bits.
source "$(dirname "$0")/common.sh"

# including PATTERN: prints the files with an #include line that matches the pattern.
including() { files src/stepwell -- .hpp .cpp | xargs -r grep -lE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($1)" || true; }

for file in $(including 'boost/asio'); do
  case $file in
    src/stepwell/coro/* | src/stepwell/io/* | src/stepwell/board/* | src/stepwell/session/async_*.hpp | src/stepwell/session/detail/async_*.hpp | src/stepwell/training/async_*.hpp) ;;
    *) grep -qE '\basync_[a-z_]+[[:space:]]*\(' "$file" || mistake "$file: includes Asio, but declares no async_ function" ;;
  esac
done
for file in $(including 'xsimd'); do
  case $file in src/stepwell/kernel/*) ;; *) mistake "$file: includes xsimd; that is for src/stepwell/kernel" ;; esac
done
for file in $(including 'xtensor/|xtl/'); do
  case $file in src/stepwell/xtensor/*) ;; *) mistake "$file: includes xtensor; that is for src/stepwell/xtensor" ;; esac
done
for file in $(including 'google/protobuf|[^>"]*\.pb\.h'); do
  case $file in
    *.hpp) mistake "$file: a header includes protobuf" ;;
    src/stepwell/format/*.cpp | src/stepwell/tensorflow/*.cpp) ;;
    *) mistake "$file: includes protobuf outside format" ;;
  esac
done
for file in $(including 'Eigen/'); do
  case $file in src/stepwell/eigen/*) ;; *) mistake "$file: includes Eigen; that is for src/stepwell/eigen" ;; esac
done
for file in $(including 'torch/|ATen/|c10/'); do
  case $file in src/stepwell/torch/*) ;; *) mistake "$file: includes LibTorch; that is for src/stepwell/torch" ;; esac
done
for file in $(including 'boost/beast'); do
  case $file in src/stepwell/board/http_server.cpp) ;; *) mistake "$file: includes Beast; that is for src/stepwell/board/http_server.cpp" ;; esac
done
for file in $(including 'mpi\.h'); do
  case $file in src/stepwell/mpi/*) ;; *) mistake "$file: includes MPI; that is for src/stepwell/mpi" ;; esac
done

# Headers are compiled with the flags of the program. With -ffast-math, these tests are always false, and a comparison with NaN may be true.
files src/stepwell -- .hpp | sed 's|^src/||' | grep -v /detail/ | with_details | grep -v '/float_bits.hpp$' | while read -r header; do
  sed 's|//.*||' "src/$header" |
    grep -nE '\b(isnan|isfinite|isinf|isnormal|isunordered|fpclassify|signbit|quiet_NaN|signaling_NaN|NAN|INFINITY|HUGE_VALF?)\b|>::infinity\b|(^|[^.>:a-z_])([a-z_]+) (==|!=) \3($|[^.:(a-z_])' |
    sed "s|^\([0-9]*\):.*|src/$header:\1: is wrong in a program with -ffast-math; use base/detail/float_bits.hpp|" || true
done >>"$mistakes"
finish
