// SPDX-License-Identifier: Apache-2.0
//
// All values that a hook has measured: for readers on other threads, and as a part of its state, for the history that `run_all` returns.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/session_metrics.hpp"
#include "stepwell/protocol/watched_values.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace stepwell::detail {

/// Values with names and steps. The values of one name are one variable: a string with a line "STEP VALUE" for each value, because
/// the shape of a variable must not change.
class value_history {
public:
  /// Maximum size of the text of one name, which is enough for 5,000 values. Older values are dropped.
  static constexpr std::size_t max_bytes = std::size_t{1} << 18;

  /// Readers see each name with `prefix` before it.
  explicit value_history(std::vector<std::string> names, std::string prefix = {});

  /// Begins or continues with a session: publishes `newest`, the values of `step`, except those that are unset.
  void start(const session_requests& session, std::span<const double> newest, std::int64_t step);
  /// Adds and publishes the values of `step`, except those that are unset. @pre There is one value for each name.
  void add(std::span<const double> values, std::int64_t step);
  /// Adds all values to `all`, name after name, oldest first. Omits lines of a restored text that are not values.
  void add_to(std::vector<history_value>& all) const;
  /// Adds the variables to `all`. Their names begin with "history/".
  void add_variables(variable_list& all);

private:
  void publish(std::span<const double> values, std::int64_t step);

  std::vector<std::string> names_;
  std::string prefix_;
  std::vector<std::string> lines_;  // one text for each name
  value_publisher publisher_;
};

}  // namespace stepwell::detail
