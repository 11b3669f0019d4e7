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
  std::uint16_t port = 0;                                         // 0: one that is free
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  // until it is stopped
  std::vector<std::string> hosts = {};                            // names of this server, besides those of this machine
  std::string token_file = {};                                    // empty: a token is generated
};

/// `[--run-dir DIR] [--port N] [--steps N] [--host NAME]... [--token-file FILE]`; nothing for anything else.
[[nodiscard]] std::optional<options> parse_options(int count, const char* const* arguments);

}  // namespace async_server
