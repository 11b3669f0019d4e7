// SPDX-License-Identifier: Apache-2.0
//
// Random choices for one crafted file, all from one printed seed, and mutations of bytes.
#pragma once

#include <stepwell/base/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stepwell::test {

/// The random choices of case `number` of `seed`. They are reproducible.
class choices {
public:
  choices(std::uint64_t seed, std::uint64_t number) : stream_(random_bits(seed, number, 1)) {}

  /// Returns a number from 0 to `limit` - 1.
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : stream_() % limit; }
  [[nodiscard]] bool one_in(std::uint64_t count) { return below(count) == 0; }
  template<class T, std::size_t Count>
  [[nodiscard]] const T& one_of(const std::array<T, Count>& all) {
    return all[below(Count)];
  }

  /// Returns a number at or next to a limit of a type, or a random one.
  [[nodiscard]] std::uint64_t extreme() {
    constexpr std::array<std::uint64_t, 20> limits = {0,
                                                      1,
                                                      127,
                                                      128,
                                                      255,
                                                      65535,
                                                      0x7fffffff,
                                                      0x80000000,
                                                      0xffffffff,
                                                      0x100000000,
                                                      1ULL << 20,
                                                      1ULL << 30,
                                                      1ULL << 34,
                                                      1ULL << 40,
                                                      1ULL << 50,
                                                      1ULL << 62,
                                                      0x7fffffffffffffff,
                                                      0x8000000000000000,
                                                      0xfffffffffffffff0,
                                                      ~0ULL};
    return one_in(8) ? stream_() : one_of(limits) + below(3) - 1;
  }

  [[nodiscard]] std::string bytes(std::size_t count) {
    std::string made(count, '\0');
    for (auto& byte : made) { byte = static_cast<char>(stream_()); }
    return made;
  }

private:
  random_stream stream_;
};

/// Returns `text` with some bytes changed.
inline std::string mutated(std::string text, choices& random) {
  const auto at = [&] { return static_cast<std::size_t>(random.below(text.size() + 1)); };
  for (auto left = 1 + random.below(4); left > 0; --left) {
    const auto begin = at();
    const auto count = static_cast<std::size_t>(1 + random.below(64));
    switch (random.below(9)) {
      case 0:
        if (begin < text.size()) { text[begin] = static_cast<char>(text[begin] ^ (1 << random.below(8))); }
        break;
      case 1: text.resize(begin); break;
      case 2: text.insert(begin, random.bytes(count)); break;
      case 3: text.insert(begin, text.substr(at(), count)); break;
      case 4: text.erase(begin, count); break;
      case 5: text.replace(begin, count, std::string(std::min(count, text.size() - begin), random.one_in(2) ? '\0' : '\xff')); break;
      case 6:
      case 7: {  // a number of 4 or 8 bytes
        const auto number = random.extreme();
        for (std::size_t i = 0; i < (random.one_in(2) ? 4U : 8U) && begin + i < text.size(); ++i) {
          text[begin + i] = static_cast<char>(number >> (8 * i));
        }
        break;
      }
      default: text.append(text.substr(at())); break;
    }
  }
  return text;
}

}  // namespace stepwell::test
