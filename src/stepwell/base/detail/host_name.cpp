// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/detail/host_name.hpp"

#include <unistd.h>
#include <array>

namespace stepwell::detail {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') { return "localhost"; }
  return name.data();
}

}  // namespace stepwell::detail
