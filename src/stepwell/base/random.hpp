// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: each number is a pure function of (seed, stream, index). A generator can seek to any index in O(1), so a
// resumed run can draw the same numbers as an uninterrupted run. The generator is Philox4x32-10 of Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). `random_permutation` is a Feistel network with cycle walking: the network is
// applied again until the result is below the size of the permutation.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>

namespace stepwell {

/// Returns the 128 random bits that Philox4x32-10 computes from `counter` and `key`.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                                std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

namespace detail {
/// Returns block number `index` of `stream` for `seed`. A block is 128 random bits.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> random_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  return philox4x32({low(index), high(index), low(stream), high(stream)}, {low(seed), high(seed)});
}
}  // namespace detail

/// Returns the 64-bit random number with the given `index` in `stream` for `seed`.
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const auto block = detail::random_block(seed, stream, index);
  return std::uint64_t{block[1]} << 32 | block[0];
}

/// A sequence of random numbers with a position that can be saved and set. The class is a UniformRandomBitGenerator. If a model lists
/// `state()` in its `variables()`, a resumed run continues at the saved position.
class random_stream {
public:
  using result_type = std::uint64_t;

  constexpr explicit random_stream(std::uint64_t seed = 0, std::uint64_t stream = 0) noexcept : state_{seed, stream, 0} {}

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }
  constexpr result_type operator()() noexcept { return random_bits(state_[0], state_[1], state_[2]++); }

  /// Returns a number uniformly distributed in [0, 1). Draws one random number.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  /// Returns a number with the standard normal distribution (Box-Muller). Draws two random numbers. On another machine or
  /// with another C library, `normal` may compute a slightly different value from the same two random numbers.
  double normal() noexcept {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  [[nodiscard]] constexpr std::uint64_t position() const noexcept { return state_[2]; }
  constexpr void seek(std::uint64_t position) noexcept { state_[2] = position; }
  /// Returns a view of seed, stream and position, which are the complete state of this object. A restore writes to this view.
  [[nodiscard]] constexpr std::span<std::uint64_t, 3> state() noexcept { return state_; }

private:
  std::array<std::uint64_t, 3> state_;
};

/// A random permutation of [0, size). Any element is computed in O(1), without storing the others.
class random_permutation {
public:
  /// @pre `size` is below 2^62.
  constexpr random_permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream) noexcept
      : size_(size), seed_(seed), stream_(stream),
        half_bits_(static_cast<int>(std::bit_width(size > 1 ? size - 1 : std::uint64_t{1}) + 1) / 2) {}

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return size_; }

  /// Returns the element of the permutation at `index`, a number in [0, size). @pre `index < size()`.
  /// @cost One pass through the network has six rounds, or twelve if the size is at most 64. The average number of passes is at most four,
  ///       because the network permutes a range at most four times as large as [0, size).
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
    do { index = shuffle_once(index); } while (index >= size_);
    return index;
  }

private:
  [[nodiscard]] constexpr std::uint64_t shuffle_once(std::uint64_t index) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    // With fewer rounds, the element at an index would not be uniformly distributed: over many streams, some elements occur measurably more
    // often. The effect is largest in small networks.
    const std::uint64_t rounds = half_bits_ < 4 ? 12 : 6;
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      // `random_bits` uses words 0 and 1 of a block. The network uses word 2, so a permutation and a `random_stream` with the same seed and
      // stream number use different bits.
      const auto mixed = left ^ (detail::random_block(seed_, stream_, round << 60 | right)[2] & mask);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  std::uint64_t size_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  int half_bits_;
};

}  // namespace stepwell
