// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/scheduled_hook.hpp"

#include "stepwell/base/log.hpp"
#include "stepwell/hooks/detail/value_text.hpp"

#include <fmt/format.h>

namespace stepwell::detail {

void check_plateau_hook(const reduce_on_plateau_hook_options& options) {
  if (options.every_n_steps < 1) {
    throw invalid_argument_error(
        fmt::format("reduce_on_plateau_hook: invalid every_n_steps={}; it must be above zero", options.every_n_steps));
  }
  if (options.name.empty()) { throw invalid_argument_error("reduce_on_plateau_hook: the name is empty; its state is saved under it"); }
}

void log_reduction(const session_requests& session, double from, double to, std::int64_t step) {
  session.log(log_level::info, fmt::format("step {}: the rate is reduced from {} to {}, because the watched value does not improve", step,
                                           number_text(from), number_text(to)));
}

}  // namespace stepwell::detail
