// SPDX-License-Identifier: Apache-2.0
//
// Private to `io`: files by descriptor, and system calls that a signal interrupts.
#pragma once

#include "stepwell/io/file_system.hpp"

#include <cerrno>
#include <memory>
#include <string>

namespace stepwell::io {

/// Returns the result of `call`. Repeats the call while it fails with EINTR.
template<class Call>
auto retry_on_signal(Call call) {
  auto outcome = call();
  while (outcome < 0 && errno == EINTR) { outcome = call(); }
  return outcome;
}

/// Returns a file that owns the open `descriptor`.
[[nodiscard]] std::unique_ptr<file> file_of_descriptor(std::string path, int descriptor);

}  // namespace stepwell::io
