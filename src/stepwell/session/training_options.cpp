// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/training_options.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>

namespace stepwell {

training_options::operator session_setup() const {
  const auto refuse = [](std::string_view option, std::string_view instead) {
    throw invalid_argument_error(fmt::format("monitored_session: {} is given, but {}", option, instead));
  };
  for (const auto& all : {detail::options_of_checkpoints(*this), detail::options_of_events(*this)}) {
    for (const auto& [option, is_given] : all) {
      if (is_given) { refuse(option, "this session has no default hooks; give it a hook, or use monitored_training_session"); }
    }
  }
  if (!master.empty()) { refuse("master", "this option is for monitored_training_session; give a session creator with a target"); }
  if (!is_chief) { refuse("is_chief = false", "this option is for monitored_training_session; give a worker_session_creator"); }
  return {.options = *this};
}

namespace detail {

std::vector<named_option> options_of_checkpoints(const training_options& options) {
  const auto& saver = options.saver;
  const saver_options defaults;
  const bool is_overhead_off = !options.save_checkpoint_overhead.is_default() && !options.save_checkpoint_overhead.enabled();
  return {{"save_checkpoint_secs", options.save_checkpoint_secs.enabled().has_value()},
          {"save_checkpoint_steps", options.save_checkpoint_steps.enabled().has_value()},
          {"save_checkpoint_overhead", options.save_checkpoint_overhead.enabled().has_value()},
          {"checkpoint_listeners", !options.checkpoint_listeners.empty()},
          {"max_to_keep", options.max_to_keep.enabled().has_value()},
          {"save_checkpoint_interval", options.save_checkpoint_interval != interval_bounds() && !is_overhead_off},
          {"saver.basename", saver.basename != defaults.basename && options.checkpoint_dir.empty()},  // restores read it, too
          {"saver.pad_step_number", saver.pad_step_number != defaults.pad_step_number},
          {"saver.max_to_keep", saver.max_to_keep.given() != defaults.max_to_keep.given()},
          {"saver.keep_every_n_hours", saver.keep_every_n_hours.enabled().has_value()},
          {"saver.pinned", !saver.pinned.empty()},
          {"saver.max_staged_bytes", saver.max_staged_bytes != defaults.max_staged_bytes},
          {"saver.when_busy", saver.when_busy != defaults.when_busy},
          {"saver.on_error", saver.on_error != defaults.on_error},
          {"saver.shards", saver.shards != defaults.shards},
          {"saver.sync", saver.sync != defaults.sync}};
}

std::vector<named_option> options_of_events(const training_options& options) {
  return {{"metrics", !options.metrics.empty()},
          {"hparams", options.hparams.has_value()},
          {"save_summaries_steps", options.save_summaries_steps.enabled().has_value()},
          {"save_summaries_secs", options.save_summaries_secs.enabled().has_value()},
          {"save_summaries_at_end", options.save_summaries_at_end.value_or(false)},
          {"check_summaries", options.check_summaries},
          {"log_step_count_steps", options.log_step_count_steps.enabled().has_value()},
          {"log_every_secs", options.log_every_secs != training_options().log_every_secs}};
}

void resolve_role(training_options& options) {
  if (!options.group) { return; }
  if (!options.master.empty()) {
    throw invalid_argument_error(
        "training_options: both group and master are given; in a group, rank 0 is the chief, and there is no master");
  }
  options.is_chief = options.group->is_chief();
}

void resolve_directories(training_options& options) {
  if (options.summary_dir.empty()) { options.summary_dir = options.checkpoint_dir; }
  for (auto* directory : {&options.checkpoint_dir, &options.summary_dir}) {
    *directory = options.is_chief ? value_or_throw(io::absolute_path(*directory)) : std::string();
  }
}

summary::writer_options event_options(const training_options& options) {
  summary::writer_options writer;
  if (options.saver.file_system) { writer.file_system = options.saver.file_system; }
  if (options.saver.pool) { writer.threads = options.saver.pool; }
  writer.clock = options.clock ? options.clock : system_clock();
  writer.metrics = options.metrics;
  return writer;
}

session_target target_of(const training_options& options) { return {options.master, options.is_chief, options.config}; }

}  // namespace detail
}  // namespace stepwell
