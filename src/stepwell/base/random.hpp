// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are a pure function of (seed, stream, index): any position is reached in O(1), so a resumed run
// draws what the unbroken one would have drawn. Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011); the permutation is a Feistel network walked until it falls inside the range.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>

namespace stepwell {

/// The 128 random bits at `counter` under `key`.
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
/// The block number `index` of `stream` under `seed`.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> random_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  return philox4x32({low(index), high(index), low(stream), high(stream)}, {low(seed), high(seed)});
}
}  // namespace detail

/// The 64 random bits number `index` of `stream` under `seed`.
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) noexcept {
  const auto block = detail::random_block(seed, stream, index);
  return std::uint64_t{block[1]} << 32 | block[0];
}

/// A sequence of random numbers with a position that can be saved and set: a UniformRandomBitGenerator whose whole
/// state is `state()`. Put that into `variables()` and a resumed run goes on where the saved one stood.
class random_stream {
public:
  using result_type = std::uint64_t;

  constexpr explicit random_stream(std::uint64_t seed = 0, std::uint64_t stream = 0) noexcept : state_{seed, stream, 0} {}

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }
  constexpr result_type operator()() noexcept { return random_bits(state_[0], state_[1], state_[2]++); }

  /// Uniform in [0, 1). One number drawn.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  /// Standard normal (Box-Muller). Two numbers drawn. The same bits give the same value on one machine and C library.
  double normal() noexcept {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

  [[nodiscard]] constexpr std::uint64_t position() const noexcept { return state_[2]; }
  constexpr void seek(std::uint64_t position) noexcept { state_[2] = position; }
  /// Seed, stream and position: three numbers that are the whole generator.
  [[nodiscard]] constexpr std::span<std::uint64_t, 3> state() noexcept { return state_; }

private:
  std::array<std::uint64_t, 3> state_;
};

/// A random order of [0, size), any element of which is found in O(1) without storing the others.
class random_permutation {
public:
  /// @pre `size` is below 2^62.
  constexpr random_permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream) noexcept
      : size_(size), seed_(seed), stream_(stream),
        half_bits_(static_cast<int>(std::bit_width(size > 1 ? size - 1 : std::uint64_t{1}) + 1) / 2) {}

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return size_; }

  /// Where `index` goes. @pre `index < size()`.
  /// @cost Six rounds (twelve for a size up to 64), on average at most four times: the network covers less than four
  ///       times the range.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
    do { index = shuffle_once(index); } while (index >= size_);
    return index;
  }

private:
  [[nodiscard]] constexpr std::uint64_t shuffle_once(std::uint64_t index) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    // Measured: fewer rounds favour some places, the more so the smaller the network.
    const std::uint64_t rounds = half_bits_ < 4 ? 12 : 6;
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      // The half of the block that `random_bits` leaves alone: an order and a stream of one seed share no bits.
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
