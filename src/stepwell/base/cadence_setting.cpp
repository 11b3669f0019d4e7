// SPDX-License-Identifier: Apache-2.0
#include "stepwell/base/cadence_setting.hpp"

#include "stepwell/base/detail/refuse_negative.hpp"
#include "stepwell/base/log.hpp"

#include <fmt/format.h>

namespace stepwell {

std::optional<cadence> choose_cadence(const cadence_setting& said, std::optional<cadence> otherwise) {
  detail::refuse_negative(said.steps_name, said.steps);
  detail::refuse_negative(said.secs_name, said.secs);
  if (said.steps.is_default() && said.secs.is_default()) { return otherwise; }
  const auto steps = said.steps.enabled();
  const auto secs = said.secs.enabled();
  if (steps && secs) {
    log_warning(fmt::format("both {} and {} are given; {} ({} s) is used", said.secs_name, said.steps_name, said.secs_name, secs->count()));
  }
  if (secs) { return cadence{.every_secs = secs->duration()}; }
  if (steps) { return cadence{.every_steps = steps}; }
  return std::nullopt;
}

}  // namespace stepwell
