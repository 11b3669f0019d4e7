// SPDX-License-Identifier: Apache-2.0
//
// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace digits {

struct options {
  std::string run_dir = "run";
  std::string data;  // empty: render the data into run_dir/data
  std::int64_t steps = 30'000;
  std::optional<std::uint64_t> epochs;  // empty: no limit
  std::size_t batch_size = 128;
  std::size_t hidden = 128;
  std::uint64_t seed = 1;
  std::int64_t save_steps = 500;
  int threads = 1;
  bool group = false;
};

/// An invalid command line. `what()` gives the reason for the user.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parses the arguments. Returns nothing if they request the help text, which `help_text` returns.
/// @errors `usage_error` for an unknown option, a repeated option, or an invalid value.
[[nodiscard]] std::optional<options> parse_options(int count, const char* const* arguments);

[[nodiscard]] std::string help_text();

}  // namespace digits
