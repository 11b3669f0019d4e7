// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/checkpoint_saver_hook.hpp"

#include "stepwell/base/cadence_setting.hpp"

namespace stepwell {

checkpoint_saver_hook::checkpoint_saver_hook(const checkpoint_saver_options& options) : checkpoint_saver_hook(deferred(options)) {
  work_->open();
}

checkpoint_saver_hook checkpoint_saver_hook::deferred(const checkpoint_saver_options& options) {
  const auto period = choose_cadence({"save_steps", options.save_steps, "save_secs", options.save_secs}, std::nullopt);
  if (!period) { throw invalid_argument_error("checkpoint_saver_hook: one of save_secs and save_steps must be given and above zero"); }
  if (options.checkpoint_dir.empty()) { throw invalid_argument_error("checkpoint_saver_hook: checkpoint_dir is empty"); }
  checkpoint_saver_hook made;
  made.period_ = *period;
  made.work_ = std::make_shared<checkpoint_work>(options);
  return made;
}

}  // namespace stepwell
