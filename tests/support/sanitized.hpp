// SPDX-License-Identifier: Apache-2.0
//
// Tells whether the program runs under a sanitizer, whose allocator ends the program when memory is exhausted.
#pragma once

namespace stepwell::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace stepwell::test
