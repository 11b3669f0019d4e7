// SPDX-License-Identifier: Apache-2.0
//
// Internal: the lines of a logging_tensor_hook, and their cadence.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/hooks/detail/kept_value.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stepwell::detail {

/// Returns the cadence of the lines. Empty if a line is logged at the end only.
/// @errors `invalid_argument_error` unless exactly one period, `at_end`, or both are given, and if `every_n_iter` is not above zero.
/// @see contract HOOK-LOG-1
[[nodiscard]] std::optional<cadence> logging_cadence(std::optional<std::int64_t> every_n_iter, std::optional<seconds_value> every_n_secs,
                                                     bool at_end);

/// Converts tags and values to lines.
class logging_lines {
public:
  using formatter = std::function<std::string(const std::map<std::string, logged_value>&)>;

  /// @errors `invalid_argument_error` if a map contains a tag twice.
  logging_lines(std::vector<std::string> tags, bool is_map, bool at_end, formatter make_line);

  [[nodiscard]] bool at_end() const noexcept { return at_end_; }

  /// Logs "a = 1, b = 2 (0.123 sec)", or the line that the formatter returns.
  /// @pre There is one value for each tag.
  void write(std::span<const kept_value> values, const std::optional<elapsed_since_trigger>& elapsed) const;

private:
  [[nodiscard]] std::string line_of(std::span<const kept_value> values, const std::optional<elapsed_since_trigger>& elapsed) const;

  std::vector<std::string> tags_;
  std::vector<std::size_t> order_;  // order of printing
  bool at_end_;
  formatter formatter_;
};

}  // namespace stepwell::detail
