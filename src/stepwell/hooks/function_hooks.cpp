// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/function_hooks.hpp"

#include "stepwell/hooks/detail/value_text.hpp"

#include <fmt/format.h>

namespace stepwell::detail {

void check_every_n_steps(const char* function, std::int64_t n) {
  if (n < 1) { throw invalid_argument_error(fmt::format("{}: n is {}; it must be above zero", function, n)); }
}

void check_every(seconds_value period) {
  if (period.count() > 0) { return; }
  throw invalid_argument_error(fmt::format("every: the period is {} s; it must be above zero", number_text(period.count())));
}

void check_saved_state(const saved_state& state) {
  if (state.name.empty()) { throw invalid_argument_error("saved_state: the name is empty; the state is saved under it"); }
  if (!state.variables) { throw invalid_argument_error("saved_state: variables is empty; give a function that lists the state"); }
}

}  // namespace stepwell::detail
