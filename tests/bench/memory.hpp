// SPDX-License-Identifier: Apache-2.0
//
// The memory of this process, as Linux reports it.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

namespace stepwell::bench {

/// Returns a value of /proc/self/status in bytes, for example that of "VmHWM:", the peak memory. Returns 0 if there is no such value.
[[nodiscard]] inline std::size_t status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) { return std::stoul(line.substr(key.size() + 1)) << 10; }
  }
  return 0;
}

/// Sets the peak memory to the present memory.
inline void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

}  // namespace stepwell::bench
