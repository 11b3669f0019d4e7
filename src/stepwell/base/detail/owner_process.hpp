// SPDX-License-Identifier: Apache-2.0
//
// Internal: the process in which an object was made. A child process made by `fork` has a copy of each object, but none of the threads and
// locks of its parent.
#pragma once

#include <unistd.h>

namespace stepwell::detail {

class owner_process {
public:
  /// Returns true in the process in which this object was made, and false in its children.
  [[nodiscard]] bool is_this_process() const noexcept { return id_ == ::getpid(); }
  [[nodiscard]] pid_t id() const noexcept { return id_; }

private:
  pid_t id_ = ::getpid();
};

}  // namespace stepwell::detail
