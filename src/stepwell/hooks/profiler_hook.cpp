// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/profiler_hook.hpp"

#include "stepwell/base/cadence_setting.hpp"
#include "stepwell/base/error.hpp"

#include <memory>
#include <string>
#include <utility>

namespace stepwell {

profiler_hook::profiler_hook(profiler_options options) {
  const auto period = choose_cadence({"save_steps", options.save_steps, "save_secs", options.save_secs}, std::nullopt);
  if (!period) { throw invalid_argument_error("profiler_hook: exactly one of save_steps and save_secs must be given and above zero"); }
  period_ = *period;
  auto directory = options.output_dir.empty() ? std::string(1, '.') : std::move(options.output_dir);
  work_ = std::make_shared<profiler_work>(std::move(directory), std::move(options.events));
}

}  // namespace stepwell
