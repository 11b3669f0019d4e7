// SPDX-License-Identifier: Apache-2.0
//
// The numeric kernels, compiled once for each set of vector instructions: on x86-64 for SSE2, AVX2 with FMA, and AVX-512, otherwise only for
// the instructions that the whole library is compiled for. The best set of the machine is selected once, at the first use. The environment
// variable STEPWELL_SIMD (sse2, avx2 or avx512) selects another one.
//
// All sets return the same bits. Element i of an array is added in lane i % 16, whatever the width of a vector, and the lanes are added in
// one order. A product is fused with an addition only if the product is exact. A NaN in a result is always the same NaN.
//
// The sources of the sets include this header, and are compiled with flags for their instructions. If they contained an inline function that
// another source contains, too, the linker could select the one with the wrong instructions. This header therefore includes no other header
// of the library, and no container.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace stepwell::kernel {

/// The moments of the finite values. A minimum or maximum that is zero is +0. Without a finite value, both are 0.
struct simd_moments {
  double min;
  double max;
  double sum;
  double sum_squares;
  std::uint64_t count;  ///< Number of finite values.
};

/// The buckets of a TF2 histogram. The bucket of a value is floor((value / 2 - half_min) / half_width), at most `last`.
struct equal_places {
  double half_min;
  double half_width;  ///< Above 0.
  double last;        ///< The number of the last bucket, below 2^32 - 1.
};

/// The table that maps a value to its bucket of a TF1 histogram. A cell is 1/16 of an octave, which contains at most one limit, because the
/// limits grow by 1/10. A value is in cell `magnitude >> growing_shift<T>` of its bits, counted from 2^growing_first_exponent. The low bits of
/// the magnitude are added to the entry of a positive value, and subtracted from that of a negative one. The carry behind the limit selects
/// the bucket, which is the result shifted to the right by `growing_shift<T>`.
template<class T>
using growing_entry = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template<class T>
constexpr int growing_shift = sizeof(T) == 4 ? 19 : 48;  // keeps 4 bits of the mantissa
constexpr int growing_first_exponent = -41;              // 2^-41 is below the least limit above 0, 1e-12
constexpr int growing_last_exponent = 67;                // 2^67 is above the greatest limit below infinity, 1e20
constexpr std::size_t growing_cells = std::size_t{16} * (growing_last_exponent - growing_first_exponent + 1);
constexpr std::uint32_t growing_nonfinite = 1551;  ///< The bucket of NaN and infinities.

/// Returns the entries of the positive values, then those of the negative ones. T is float or double.
template<class T>
[[nodiscard]] std::span<const growing_entry<T>> growing_entries();

/// The kernels for arrays of one type. Any alignment, any length.
template<class T>
struct simd_functions {
  bool (*all_finite)(const T* values, std::size_t size) noexcept;
  bool (*any_nan)(const T* values, std::size_t size) noexcept;
  /// Returns true if all values are in [min, max]. NaN is in no range.
  bool (*all_within)(const T* values, std::size_t size, T min, T max) noexcept;
  simd_moments (*moments)(const T* values, std::size_t size) noexcept;
  double (*sum)(const T* values, std::size_t size) noexcept;
  /// Writes the bucket of each value as 1.5 * 2^52 + bucket: the low 32 bits of the double are the bucket. That of NaN and infinities is
  /// `last` + 1.
  void (*equal_buckets)(const T* values, std::size_t size, const equal_places& places, double* buckets) noexcept;
  /// Writes the bucket of each value. `cells` are the `growing_entries`.
  void (*growing_buckets)(const T* values, std::size_t size, const growing_entry<T>* cells, growing_entry<T>* buckets) noexcept;
  void (*move_towards)(T* averages, const T* values, std::size_t size, T weight) noexcept;
};

/// The place of the greatest value. If several values are the greatest, it is the first of them.
struct simd_argmax {
  std::size_t index;
  bool has_nan;  ///< If true, `index` has no meaning.
};

/// All kernels of a set of instructions.
struct simd_kernels {
  const char* name;
  simd_functions<float> floats;
  simd_functions<double> doubles;
  /// Returns true if (bits & 0x7fff) is at most `greatest` for all elements: a test of 16-bit floating-point numbers.
  bool (*magnitudes_at_most)(const std::uint16_t* bits, std::size_t size, std::uint16_t greatest) noexcept;
  void (*half_to_float)(const std::uint16_t* bits, std::size_t size, float* values) noexcept;
  void (*bfloat16_to_float)(const std::uint16_t* bits, std::size_t size, float* values) noexcept;
  /// @pre `size` is at least 1.
  simd_argmax (*argmax)(const float* values, std::size_t size) noexcept;
  std::size_t (*count_greater)(const float* values, std::size_t size, float than) noexcept;
  std::size_t (*count_equal)(const std::int64_t* some, const std::int64_t* others, std::size_t size) noexcept;
};

/// Returns the sets that both the machine and the library have, the best one first.
[[nodiscard]] std::span<const simd_kernels* const> available_simd() noexcept;

/// Returns the available set with this name, or the best one if `name` is null, and logs the result at debug level. If no available set has
/// the name, logs a warning and returns the best set: the kernels do not throw.
[[nodiscard]] const simd_kernels& select_simd(const char* name) noexcept;

/// Returns the set that STEPWELL_SIMD names, selected by the first call.
/// @threads Any.
[[nodiscard]] const simd_kernels& simd() noexcept;

}  // namespace stepwell::kernel
