// SPDX-License-Identifier: Apache-2.0
//
// Internal: arithmetic that does not depend on the floating-point mode of the calling thread. A program may have changed the mode, for
// example with `torch::set_flush_denormal`, `fesetround`, or the option `-ffast-math` of the linker.
#pragma once

#include <cfenv>
#include <cstdint>

namespace stepwell::detail {

/// Sets the default mode in this thread for the lifetime of the object: round to nearest, keep denormal numbers, no traps.
/// @cost About a nanosecond, if the mode is the default already.
class default_float_mode {
public:
#if defined(__x86_64__)
  default_float_mode() noexcept {
    if ((before_ & modes) != normal) [[unlikely]] { __builtin_ia32_ldmxcsr(normal); }
  }
  ~default_float_mode() {
    if ((before_ & modes) != normal) [[unlikely]] { __builtin_ia32_ldmxcsr(before_); }
  }
#elif defined(__aarch64__)
  default_float_mode() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    if (before_ != normal) [[unlikely]] { asm volatile("msr fpcr, %0" ::"r"(normal) : "memory"); }
  }
  ~default_float_mode() {
    if (before_ != normal) [[unlikely]] { asm volatile("msr fpcr, %0" ::"r"(before_) : "memory"); }
  }
#else
  default_float_mode() noexcept {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~default_float_mode() { std::fesetenv(&before_); }
#endif
  default_float_mode(const default_float_mode&) = delete;
  default_float_mode& operator=(const default_float_mode&) = delete;

private:
#if defined(__x86_64__)
  static constexpr unsigned modes = 0xffc0;   // the other bits record exceptions
  static constexpr unsigned normal = 0x1f80;  // all exceptions masked
  const unsigned before_ = __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
  static constexpr std::uint64_t normal = 0;
  std::uint64_t before_ = 0;
#else
  std::fenv_t before_;
#endif
};

}  // namespace stepwell::detail
