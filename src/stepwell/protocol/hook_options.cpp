// SPDX-License-Identifier: Apache-2.0
#include "stepwell/protocol/hook_options.hpp"

namespace stepwell::detail {

std::vector<named_option> named_options(const checkpoint_saver_options& saves) {
  const auto& saver = saves.saver;
  const checkpoint_saver_options defaults;
  const bool is_overhead_off = !saves.save_overhead.is_default() && !saves.save_overhead.enabled();
  return {{"checkpoint_dir", !saves.checkpoint_dir.empty()},
          {"save_secs", saves.save_secs.enabled().has_value()},
          {"save_steps", saves.save_steps.enabled().has_value()},
          {"save_overhead", saves.save_overhead.enabled().has_value()},
          {"save_interval", saves.save_interval != defaults.save_interval && !is_overhead_off},
          {"listeners", !saves.listeners.empty()},
          {"summary_dir", !saves.summary_dir.empty()},
          {"log_every_secs", saves.log_every_secs != defaults.log_every_secs},
          {"saver.basename", saver.basename != defaults.saver.basename},
          {"saver.pad_step_number", saver.pad_step_number != defaults.saver.pad_step_number},
          {"saver.max_to_keep", saver.max_to_keep.enabled() && saver.max_to_keep.enabled() != defaults.saver.max_to_keep.enabled()},
          {"saver.keep_every_n_hours", saver.keep_every_n_hours.enabled().has_value()},
          {"saver.pinned", !saver.pinned.empty()},
          {"saver.max_staged_bytes", saver.max_staged_bytes != defaults.saver.max_staged_bytes},
          {"saver.when_busy", saver.when_busy != defaults.saver.when_busy},
          {"saver.on_error", saver.on_error != defaults.saver.on_error},
          {"saver.shards", saver.shards != defaults.saver.shards},
          {"saver.sync", saver.sync != defaults.saver.sync}};
}

std::vector<named_option> named_options(const summary_saver_options& summaries) {
  return {{"output_dir", !summaries.output_dir.empty()},
          {"writer", summaries.writer != nullptr},
          {"metrics", !summaries.metrics.empty()},
          {"save_steps", summaries.save_steps.enabled().has_value()},
          {"save_secs", summaries.save_secs.enabled().has_value()},
          {"at_end", summaries.at_end.value_or(false)},
          {"check_variables", summaries.check_variables},
          {"hparams", summaries.hparams.has_value()}};
}

std::vector<named_option> named_options(const step_counter_options& step_counter) {
  return {{"every_n_steps", step_counter.every_n_steps.enabled().has_value()},
          {"every_n_secs", step_counter.every_n_secs.enabled().has_value()},
          {"output_dir", !step_counter.output_dir.empty()},
          {"writer", step_counter.writer != nullptr},
          {"log_every_secs", step_counter.log_every_secs != step_counter_options().log_every_secs}};
}

}  // namespace stepwell::detail
