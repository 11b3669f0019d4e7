// SPDX-License-Identifier: Apache-2.0
//
// The kernels as templates over an architecture of xsimd. Only the source of each set of instructions includes this header. All names are in
// an anonymous namespace: see simd.hpp.
#pragma once

#include "stepwell/kernel/detail/simd.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <xsimd/xsimd.hpp>

namespace stepwell::kernel {
namespace {  // NOLINT(google-build-namespaces, cert-dcl59-cpp): each source gets its own functions, compiled with its own flags

template<class Arch>
struct kernels_for {
  template<class T>
  using batch = xsimd::batch<T, Arch>;
  using doubles = batch<double>;

  static constexpr std::size_t lanes = 16;
  template<class T>
  static constexpr std::size_t batches = lanes / batch<T>::size;  // that hold all lanes

  template<class T>
  static constexpr T greatest = std::numeric_limits<T>::max();
  template<class T>
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();

  // ---- conversions of vectors

  static doubles load_doubles(const double* from) noexcept { return doubles::load_unaligned(from); }
  // xsimd 8 converts through memory.
  static doubles load_doubles(const float* from) noexcept {
#if defined(__AVX512F__)
    if constexpr (doubles::size == 8) { return _mm512_cvtps_pd(_mm256_loadu_ps(from)); }
#endif
#if defined(__AVX__)
    if constexpr (doubles::size == 4) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }
#endif
#if defined(__SSE2__)
    if constexpr (doubles::size == 2) { return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)))); }
#else
    return doubles::load_unaligned(from);
#endif
  }

  template<class To, class From>
  static batch<To> cast_bits(const batch<From>& from) noexcept {
#if XSIMD_VERSION_MAJOR >= 11
    return xsimd::bitwise_cast<To>(from);
#else
    return xsimd::bitwise_cast<batch<To>>(from);
#endif
  }

  template<class T>
  static auto is_finite(const batch<T>& values) noexcept {
    return xsimd::abs(values) <= batch<T>(greatest<T>);
  }
  template<class T>
  static bool is_finite(T value) noexcept {
    return value - value == 0;
  }
  // Replaces each NaN by the same one: the sign and the payload of a result depend on the machine and on the order of the operands.
  template<class T>
  static batch<T> with_one_nan(const batch<T>& values) noexcept {
    return xsimd::select(values == values, values, batch<T>(nan<T>));
  }
  static double with_one_nan(double value) noexcept { return value == value ? value : nan<double>; }

  // ---- tests

  // Returns true if `test` is true for all values. Tests four batches per branch, because nearly all arrays pass the test.
  template<class T, class Test>
  static bool all_of(const T* values, std::size_t size, Test test) noexcept {
    using values_of = batch<T>;
    constexpr std::size_t width = values_of::size;
    const auto at = [&](std::size_t i) { return test(values_of::load_unaligned(values + i)); };
    std::size_t i = 0;
    for (; size - i >= 4 * width; i += 4 * width) {
      if (!xsimd::all((at(i) & at(i + width)) & (at(i + 2 * width) & at(i + 3 * width)))) { return false; }
    }
    for (; size - i >= width; i += width) {
      if (!xsimd::all(at(i))) { return false; }
    }
    if (i == size) { return true; }
    if (size >= width) { return xsimd::all(at(size - width)); }
    T padded[width];
    for (std::size_t j = 0; j < width; ++j) { padded[j] = values[j < size ? j : 0]; }
    return xsimd::all(test(values_of::load_unaligned(padded)));
  }

  template<class T>
  static bool all_finite(const T* values, std::size_t size) noexcept {
    return all_of(values, size, [](const batch<T>& some) { return is_finite(some); });
  }
  template<class T>
  static bool any_nan(const T* values, std::size_t size) noexcept {
    return !all_of(values, size, [](const batch<T>& some) { return some == some; });
  }
  template<class T>
  static bool all_within(const T* values, std::size_t size, T min, T max) noexcept {
    const batch<T> least(min);
    const batch<T> most(max);
    return all_of(values, size, [&](const batch<T>& some) { return (some >= least) & (some <= most); });
  }
  static bool magnitudes_at_most(const std::uint16_t* bits, std::size_t size, std::uint16_t limit) noexcept {
    using numbers = batch<std::int16_t>;  // at least 0 without the sign bit, so a signed comparison is right
    const numbers magnitude(std::int16_t{0x7fff});
    const numbers most(static_cast<std::int16_t>(limit));
    return all_of(reinterpret_cast<const std::int16_t*>(bits), size, [&](const numbers& some) { return (some & magnitude) <= most; });
  }

  // ---- sums

  // A sum of doubles in 16 lanes.
  struct lane_sums {
    doubles parts[batches<double>];

    lane_sums() noexcept {
#pragma GCC unroll 8  // g++ would make it a `rep stos`, which takes longer than the sum of a small array
      for (auto& part : parts) { part = doubles(0.0); }
    }
    bool is_finite() const noexcept {
      auto all = kernels_for::is_finite(parts[0]);
      for (std::size_t i = 1; i < batches<double>; ++i) { all = all & kernels_for::is_finite(parts[i]); }
      return xsimd::all(all);
    }
    // Adds lane i + 8 to lane i, then lane i + 4, and so on.
    double total() const noexcept {
      doubles sums[batches<double>];
      for (std::size_t i = 0; i < batches<double>; ++i) { sums[i] = parts[i]; }
      for (std::size_t half = batches<double> / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) { sums[i] = sums[i] + sums[i + half]; }
      }
      double last[doubles::size];
      sums[0].store_unaligned(last);
      for (std::size_t half = doubles::size / 2; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) { last[i] += last[i + half]; }
      }
      return with_one_nan(last[0]);
    }
  };

  template<class T>
  static double sum(const T* values, std::size_t size) noexcept {
    lane_sums all;
    const auto add = [&](const T* some) {
      for (std::size_t i = 0; i < batches<double>; ++i) { all.parts[i] = all.parts[i] + load_doubles(some + i * doubles::size); }
    };
    const std::size_t whole = size - size % lanes;
    for (std::size_t i = 0; i < whole; i += lanes) { add(values + i); }
    if (whole < size) {
      T padded[lanes] = {};
      for (std::size_t i = 0; whole + i < size; ++i) { padded[i] = values[whole + i]; }
      add(padded);
    }
    return all.total();
  }

  // ---- moments

  template<class T>
  struct lane_moments {
    using values_of = batch<T>;
    lane_sums sum;
    lane_sums squares;
    // One vector of each, although there may be several batches: with AVX2, the 16 registers hold all parts of doubles.
    values_of least = values_of(greatest<T>);
    values_of most = values_of(-greatest<T>);

    void add(const T* values) noexcept {
      for (std::size_t i = 0; i < batches<double>; ++i) {
        const doubles some = load_doubles(values + i * doubles::size);
        sum.parts[i] = sum.parts[i] + some;
        if constexpr (sizeof(T) == sizeof(float)) {
          squares.parts[i] = xsimd::fma(some, some, squares.parts[i]);  // the product of two floats is exact
        } else {
          squares.parts[i] = squares.parts[i] + some * some;
        }
      }
      auto low = values_of::load_unaligned(values);
      auto high = low;
      for (std::size_t i = 1; i < batches<T>; ++i) {
        const auto some = values_of::load_unaligned(values + i * values_of::size);
        low = xsimd::min(low, some);
        high = xsimd::max(high, some);
      }
      least = xsimd::min(least, low);
      most = xsimd::max(most, high);
    }

    // Adds the finite values, and returns their number. The sums are those of `add` with zeros in the places of the others.
    std::uint64_t add_finite(const T* values) noexcept {
      T kept[lanes];
      for (std::size_t i = 0; i < batches<T>; ++i) {
        const auto some = values_of::load_unaligned(values + i * values_of::size);
        const auto finite = kernels_for::is_finite(some);
        least = xsimd::min(least, xsimd::select(finite, some, values_of(greatest<T>)));
        most = xsimd::max(most, xsimd::select(finite, some, values_of(-greatest<T>)));
        xsimd::select(finite, some, values_of(T{0})).store_unaligned(kept + i * values_of::size);
      }
      for (std::size_t i = 0; i < batches<double>; ++i) {
        const doubles some = load_doubles(kept + i * doubles::size);
        sum.parts[i] = sum.parts[i] + some;
        squares.parts[i] = squares.parts[i] + some * some;
      }
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < lanes; ++i) { count += kernels_for::is_finite(values[i]) ? 1 : 0; }
      return count;
    }

    simd_moments total(std::uint64_t count) const noexcept {
      if (count == 0) { return {}; }
      T last_least[values_of::size];
      T last_most[values_of::size];
      least.store_unaligned(last_least);
      most.store_unaligned(last_most);
      T min = last_least[0];
      T max = last_most[0];
      for (std::size_t i = 1; i < values_of::size; ++i) {
        min = last_least[i] < min ? last_least[i] : min;
        max = last_most[i] > max ? last_most[i] : max;
      }
      return {static_cast<double>(min) + 0.0, static_cast<double>(max) + 0.0, sum.total(), squares.total(), count};
    }
  };

  // Adds blocks as if all values were finite. If a sum of squares shows that this was wrong, the block is added again.
  template<class T>
  static simd_moments moments(const T* values, std::size_t size) noexcept {
    constexpr std::size_t block = 32 * lanes;
    lane_moments<T> all;
    std::uint64_t count = 0;
    const std::size_t whole = size - size % lanes;
    for (std::size_t begin = 0; begin < whole;) {
      const std::size_t end = whole - begin < block ? whole : begin + block;
      auto more = all;
      for (std::size_t i = begin; i < end; i += lanes) { more.add(values + i); }
      if (more.squares.is_finite()) {
        all = more;
        count += end - begin;
      } else {
        for (std::size_t i = begin; i < end; i += lanes) { count += all.add_finite(values + i); }
      }
      begin = end;
    }
    if (whole < size) {
      T padded[lanes];
      for (std::size_t i = 0; i < lanes; ++i) { padded[i] = whole + i < size ? values[whole + i] : nan<T>; }
      count += all.add_finite(padded);
    }
    return all.total(count);
  }

  // ---- buckets of histograms

  // The number has the bits of an integer in its low bits.
  static constexpr double whole_numbers = 0x1.8p52;  // not 2^52, because numbers below it may have a fraction

  // Multiplies by the inverse of the width, and rounds the product minus 1/2 to the nearest whole number. That is the bucket, unless the
  // product is so near to a whole number that rounding errors matter. The value may also be NaN or infinite then: `exact` divides.
  template<class T>
  static void equal_buckets(const T* values, std::size_t size, const equal_places& places, double* buckets) noexcept {
    const double inverse = 1 / places.half_width;
    const double most = (__builtin_fabs(places.half_min) + (places.last + 1) * places.half_width) * inverse;  // of all products
    const doubles factor(inverse / 2);
    const doubles offset(places.half_min * inverse + 0.5);
    const doubles certain(0.5 - (most + 1) * 0x1p-48);
    const doubles integer(whole_numbers);
    const auto exact = [&](const doubles& value) {
      const doubles place = (value * doubles(0.5) - doubles(places.half_min)) / doubles(places.half_width);
      const doubles rounded = place + integer;
      const doubles floor = xsimd::select(rounded - integer > place, rounded - doubles(1.0), rounded);
      const doubles last(whole_numbers + places.last);
      return xsimd::select(is_finite(value), xsimd::min(floor, last), last + doubles(1.0));
    };
    constexpr std::size_t group = 4;  // batches for each branch
    std::size_t i = 0;
    for (; size - i >= group * doubles::size; i += group * doubles::size) {
      doubles rounded[group];
      const auto is_certain = [&](std::size_t j) {
        const doubles place = load_doubles(values + i + j * doubles::size) * factor - offset;
        rounded[j] = place + integer;
        return xsimd::abs(place - (rounded[j] - integer)) < certain;
      };
      if (!xsimd::all((is_certain(0) & is_certain(1)) & (is_certain(2) & is_certain(3)))) {
        for (std::size_t j = 0; j < group; ++j) { rounded[j] = exact(load_doubles(values + i + j * doubles::size)); }
      }
      for (std::size_t j = 0; j < group; ++j) { rounded[j].store_unaligned(buckets + i + j * doubles::size); }
    }
    for (; size - i >= doubles::size; i += doubles::size) { exact(load_doubles(values + i)).store_unaligned(buckets + i); }
    if (i == size) { return; }
    T padded[doubles::size] = {};
    double made[doubles::size];
    for (std::size_t j = 0; i + j < size; ++j) { padded[j] = values[i + j]; }
    exact(load_doubles(padded)).store_unaligned(made);
    for (std::size_t j = 0; i + j < size; ++j) { buckets[i + j] = made[j]; }
  }

  template<class T>
  struct growing {
    using entry = growing_entry<T>;
    static constexpr int shift = growing_shift<T>;
    static constexpr entry low_bits = (entry{1} << shift) - 1;
    static constexpr entry sign = entry{1} << (8 * sizeof(T) - 1);
    static constexpr entry first_cell = entry{(sizeof(T) == 4 ? 127 : 1023) + growing_first_exponent} << 4;
    static constexpr entry last_cell = first_cell + growing_cells - 1;

    // The values of the outermost cells. These cells contain no limit: a value outside of the table has the bucket of one of them.
    static constexpr T least = __builtin_bit_cast(T, first_cell << shift);
    static constexpr T most = __builtin_bit_cast(T, last_cell << shift);

    // Has no branch on the sign, which cannot be predicted.
    static entry bucket_of(T value, const entry* cells) noexcept {
      const T size = static_cast<T>(__builtin_fabs(static_cast<double>(value)));
      const T inside = size > least ? (size < most ? size : most) : least;
      const entry magnitude = __builtin_bit_cast(entry, inside);
      const entry negative = entry{0} - static_cast<entry>(value < 0);
      const entry low = ((magnitude & low_bits) ^ negative) - negative;
      const entry bucket = (cells[(magnitude >> shift) - first_cell + (negative & growing_cells)] + low) >> shift;
      return size <= greatest<T> ? bucket : growing_nonfinite;
    }

    static void buckets(const T* values, std::size_t size, const entry* cells, entry* buckets) noexcept {
      std::size_t i = 0;
      if constexpr (doubles::size >= 4) {  // has an instruction that gathers
        using values_of = batch<T>;
        using entries = batch<entry>;
        using index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
        for (; size - i >= values_of::size; i += values_of::size) {
          const auto loaded = values_of::load_unaligned(values + i);
          const auto finite = is_finite(loaded);
          const auto value = xsimd::select(finite, loaded, values_of(T{0}));  // the index of a NaN would be outside of the table
          const auto magnitude = cast_bits<entry>(xsimd::min(xsimd::max(xsimd::abs(value), values_of(least)), values_of(most)));
          const auto negative = value < values_of(T{0});
          const auto other = cast_bits<entry>(xsimd::select(negative, values_of(__builtin_bit_cast(T, ~entry{0})), values_of(T{0})));
          const auto cell = (magnitude >> shift) - entries(first_cell) + (other & entries(entry{growing_cells}));
          // Exclusive or with ~0, minus ~0: the number with the other sign.
          const auto low = ((magnitude & entries(low_bits)) ^ other) - other;
          const auto bucket = (entries::gather(cells, cast_bits<index>(cell)) + low) >> shift;
          const auto all = xsimd::select(finite, cast_bits<T>(bucket), values_of(__builtin_bit_cast(T, entry{growing_nonfinite})));
          cast_bits<entry>(all).store_unaligned(buckets + i);
        }
      }
      for (; i < size; ++i) { buckets[i] = bucket_of(values[i], cells); }
    }
  };

  // ---- moving averages

  template<class T>
  static void move_towards(T* averages, const T* values, std::size_t size, T weight) noexcept {
    using values_of = batch<T>;
    const values_of weights(weight);
    const auto moved = [&](const values_of& average, const values_of& value) {
      return with_one_nan<T>(average + weights * (value - average));
    };
    std::size_t i = 0;
    for (; size - i >= values_of::size; i += values_of::size) {
      moved(values_of::load_unaligned(averages + i), values_of::load_unaligned(values + i)).store_unaligned(averages + i);
    }
    for (; i < size; ++i) {
      const T average = averages[i] + weight * (values[i] - averages[i]);
      averages[i] = average == average ? average : nan<T>;
    }
  }

  // ---- conversions and counts: loops that compilers vectorise

  static void half_to_float(const std::uint16_t* bits, std::size_t size, float* values) noexcept {
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t magnitude = bits[i] & 0x7fffU;
      // Multiplying moves the exponent to the bias of a float. It is exact, also for denormal numbers.
      const auto moved = __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude << 13) * 0x1p112F);
      const std::uint32_t infinite = magnitude >= 0x7c00U ? 0x7f800000U : 0U;
      values[i] = __builtin_bit_cast(float, moved | infinite | (bits[i] & 0x8000U) << 16);
    }
  }
  static void bfloat16_to_float(const std::uint16_t* bits, std::size_t size, float* values) noexcept {
    for (std::size_t i = 0; i < size; ++i) { values[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(bits[i]) << 16); }
  }
  static std::size_t count_greater(const float* values, std::size_t size, float than) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size; ++i) { count += values[i] > than ? 1 : 0; }
    return count;
  }
  static std::size_t count_equal(const std::int64_t* some, const std::int64_t* others, std::size_t size) noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < size; ++i) { count += some[i] == others[i] ? 1 : 0; }
    return count;
  }

  static simd_argmax argmax(const float* values, std::size_t size) noexcept {
    using floats = batch<float>;
    constexpr std::size_t group = 4 * floats::size;
    std::size_t i = 0;
    float most = values[0];
    bool has_nan = false;
    if (size >= group) {
      floats parts[4];
      for (std::size_t j = 0; j < 4; ++j) { parts[j] = floats::load_unaligned(values + j * floats::size); }
      auto numbers = parts[0] == parts[0];
      for (i = 0; size - i >= group; i += group) {
        for (std::size_t j = 0; j < 4; ++j) {
          const auto some = floats::load_unaligned(values + i + j * floats::size);
          numbers = numbers & (some == some);
          parts[j] = xsimd::max(parts[j], some);
        }
      }
      has_nan = !xsimd::all(numbers);
      float all[floats::size];
      xsimd::max(xsimd::max(parts[0], parts[1]), xsimd::max(parts[2], parts[3])).store_unaligned(all);
      for (const float value : all) { most = value > most ? value : most; }
    }
    for (; i < size; ++i) {
      has_nan = has_nan || values[i] != values[i];
      most = values[i] > most ? values[i] : most;
    }
    if (has_nan) { return {0, true}; }
    const auto is_most = [&](std::size_t at) { return floats::load_unaligned(values + at) == floats(most); };
    for (i = 0; size - i >= group; i += group) {
      const auto first = is_most(i) | is_most(i + floats::size);
      if (xsimd::any(first | is_most(i + 2 * floats::size) | is_most(i + 3 * floats::size))) { break; }
    }
    while (values[i] != most) { ++i; }
    return {i, false};
  }

  // ---- the table

  template<class T>
  static constexpr simd_functions<T> functions = {&all_finite<T>, &any_nan<T>,       &all_within<T>,       &moments<T>,
                                                  &sum<T>,        &equal_buckets<T>, &growing<T>::buckets, &move_towards<T>};

  static constexpr simd_kernels table(const char* name) noexcept {
    return {name,    functions<float>, functions<double>, &magnitudes_at_most, &half_to_float, &bfloat16_to_float,
            &argmax, &count_greater,   &count_equal};
  }
};

}  // namespace
}  // namespace stepwell::kernel
