// SPDX-License-Identifier: Apache-2.0
//
// Part of each program that stepwell_portable makes.
#include <stepwell/base/detail/platform.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

/// Ends a program that was linked with the system calls of this system.
const bool checked = [] {
  if (!stepwell::detail::platform::is_portable()) {
    std::fputs("this program should make only system calls of POSIX, but was linked with those of this system\n", stderr);
    std::abort();
  }
  return true;
}();

}  // namespace
