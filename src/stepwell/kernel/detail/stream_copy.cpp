// SPDX-License-Identifier: Apache-2.0
#include "stepwell/kernel/detail/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stepwell::kernel {
namespace {

void plain_copy(std::span<const std::byte> from, std::byte* to) noexcept {
  if (!from.empty()) { std::memcpy(to, from.data(), from.size()); }
}

#if defined(__SSE2__)
// A processor prefetches within a page only. Reading several pages at a time therefore keeps more of the memory busy.
constexpr std::size_t page = 4096;
constexpr std::size_t pages = 4;
constexpr std::size_t line = 64;

/// Copies one cache line. @pre `to` is a multiple of 16.
void copy_line(const std::byte* from, std::byte* to) noexcept {
  constexpr std::size_t ahead = 4 * line;
  _mm_prefetch(reinterpret_cast<const char*>(from + ahead), _MM_HINT_T0);  // may lie behind the memory: a prefetch never fails
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  auto* const target = reinterpret_cast<__m128i*>(to);
  const auto a = _mm_loadu_si128(source);
  const auto b = _mm_loadu_si128(source + 1);
  const auto c = _mm_loadu_si128(source + 2);
  const auto d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}
#endif

}  // namespace

void stream_copy(std::span<const std::byte> from, std::span<std::byte> to) noexcept {
  auto* target = to.data();
#if defined(__SSE2__)
  constexpr std::size_t block = pages * page;
  if (from.size() >= block) {
    const auto unaligned = (16 - reinterpret_cast<std::uintptr_t>(target) % 16) % 16;
    plain_copy(from.first(unaligned), target);
    from = from.subspan(unaligned);
    target += unaligned;
    for (; from.size() >= block; from = from.subspan(block), target += block) {
      for (std::size_t in_page = 0; in_page < page; in_page += line) {
        for (std::size_t at = in_page; at < block; at += page) { copy_line(from.data() + at, target + at); }
      }
    }
    _mm_sfence();  // orders the streaming stores before later ones, such as the release of a mutex
  }
#endif
  plain_copy(from, target);
}

}  // namespace stepwell::kernel
