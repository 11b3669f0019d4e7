// SPDX-License-Identifier: Apache-2.0
//
// The command line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace async_server {

struct options {
  std::string run_dir = "run";
  std::uint16_t port = 0;                                         // 0: any free port
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  // default: until the server is stopped
  std::vector<std::string> hosts = {};                            // names of this server besides the local ones
  std::string token_file = {};                                    // empty: a token is generated
};

/// Parses `[--run-dir DIR] [--port N] [--steps N] [--host NAME]... [--token-file FILE]`. Returns nothing for any other
/// command line.
[[nodiscard]] std::optional<options> parse_options(int count, const char* const* arguments);

/// Returns the first line of a file. @errors `std::runtime_error` if it cannot be read or is empty.
[[nodiscard]] std::string token_in(const std::string& path);

}  // namespace async_server
