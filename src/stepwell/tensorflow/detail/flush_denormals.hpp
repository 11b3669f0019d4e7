// SPDX-License-Identifier: Apache-2.0
//
// Denormal numbers in runs that the calling thread executes.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <cstdint>

namespace stepwell::tensorflow::detail {

/// Makes the calling thread treat denormal numbers as zero, as the threads of TensorFlow's pools do, until the destructor restores the
/// previous state. Without it, a run in the calling thread would give other bits than a run in a pool. Does nothing if `is_on` is false.
/// @cost About 10 ns.
class flush_denormals {
public:
  explicit flush_denormals(bool is_on) noexcept : before_(is_on ? read() : 0), is_on_(is_on) {
    if (is_on_) [[likely]] { write(before_ | flush_bits); }
  }
  flush_denormals(const flush_denormals&) = delete;
  flush_denormals& operator=(const flush_denormals&) = delete;
  ~flush_denormals() {
    if (is_on_) [[likely]] { write(before_); }
  }

private:
#if defined(__SSE__)
  using state = unsigned;
  static constexpr state flush_bits = 0x8040;  // FTZ and DAZ of MXCSR
  static state read() noexcept { return _mm_getcsr(); }
  static void write(state value) noexcept { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using state = std::uint64_t;
  static constexpr state flush_bits = std::uint64_t{1} << 24U;  // FZ of FPCR
  static state read() noexcept {
    state value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(state value) noexcept { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
  using state = unsigned;  // TensorFlow does not change denormals on other processors
  static constexpr state flush_bits = 0;
  static state read() noexcept { return 0; }
  static void write(state /*value*/) noexcept {}
#endif

  state before_;
  bool is_on_;
};

}  // namespace stepwell::tensorflow::detail
