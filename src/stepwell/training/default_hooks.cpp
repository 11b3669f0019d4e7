// SPDX-License-Identifier: Apache-2.0
#include "stepwell/training/default_hooks.hpp"

#include "stepwell/base/cadence_setting.hpp"
#include "stepwell/base/detail/refuse_negative.hpp"
#include "stepwell/base/detail/time_after.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/latest_checkpoint.hpp"

#include <fmt/format.h>

namespace stepwell {
namespace {

constexpr double default_save_secs = 600;            // contract CREATE-3
constexpr std::int64_t default_summary_steps = 100;  // contract CREATE-2
constexpr std::int64_t default_count_steps = 100;    // contract CREATE-1

setting<seconds_value> secs_of(const cadence& period) {
  return period.every_secs ? setting<seconds_value>(seconds_value(*period.every_secs)) : setting<seconds_value>(none);
}
setting<std::int64_t> steps_of(const cadence& period) {
  return period.every_steps ? setting<std::int64_t>(*period.every_steps) : setting<std::int64_t>(none);
}

std::shared_ptr<clock> time_of(const plain_options& options) { return options.clock ? options.clock : system_clock(); }

saver_options saver_options_of(const plain_options& options) {
  auto made = options.saver;
  if (!options.max_to_keep.is_default()) { made.max_to_keep = options.max_to_keep; }
  if (!made.clock) { made.clock = time_of(options); }
  if (!made.pool) { made.pool = options.config.io; }
  return made;
}

/// Returns the options of event files. They use the same file system, threads and clock as checkpoints.
summary::writer_options event_options(const plain_options& options) {
  const auto saver = saver_options_of(options);
  summary::writer_options made;
  if (saver.file_system) { made.files = saver.file_system; }
  if (saver.pool) { made.threads = saver.pool; }
  made.time = time_of(options);
  made.metrics = options.metrics;
  return made;
}

/// Checks that there are event files if metric writers are given.
/// @errors `invalid_argument_error` if there are none.
void check_metrics(const plain_options& options) {
  if (!options.is_chief || options.metrics.empty() || !options.summary_dir.empty()) { return; }  // a worker writes no metrics
  throw invalid_argument_error(
      "monitored_training_session: metrics are given, but neither summary_dir nor checkpoint_dir; give one of "
      "them, the metrics receive the values of its event files");
}

std::function<std::optional<checkpoint_reader>()> checkpoint_finder(const plain_options& options, const checkpoint_saver_hook& saver) {
  if (!options.is_chief || options.checkpoint_dir.empty()) { return nullptr; }
  if (saver.is_on()) {
    return [work = saver.work()] { return work->saver().restore_newest(); };
  }
  return [directory = options.checkpoint_dir, basename = options.saver.basename, files = options.saver.file_system] {
    return find_newest_whole(directory, basename, files);
  };
}

/// Returns the duration, or nothing if the setting is off.
std::optional<clock::duration> duration_of(const setting<seconds_value>& said) {
  const auto seconds = said.enabled();
  return seconds ? std::optional(detail::as_duration(*seconds)) : std::nullopt;
}

}  // namespace

void refuse_negative_options(const plain_options& options) {
  detail::refuse_negative("log_step_count_steps", options.log_step_count_steps);
  detail::refuse_negative("max_to_keep", options.max_to_keep);
  detail::refuse_negative("stop_grace_period_secs", options.stop_grace_period);
  detail::refuse_negative("preemption_grace", options.preemption_grace);
}

checkpoint_saver_hook make_checkpoint_saver_hook(const plain_options& options, bool is_deferred) {
  check_metrics(options);
  const auto period =
      choose_cadence({"save_checkpoint_steps", options.save_checkpoint_steps, "save_checkpoint_secs", options.save_checkpoint_secs},
                     cadence{.every_secs = std::chrono::duration<double>(default_save_secs)});
  if (!options.is_chief || options.checkpoint_dir.empty() || !period) { return checkpoint_saver_hook::off(); }
  const checkpoint_saver_options made{.checkpoint_dir = options.checkpoint_dir,
                                      .save_secs = secs_of(*period),
                                      .save_steps = steps_of(*period),
                                      .saver = saver_options_of(options),
                                      .listeners = options.listeners,
                                      .summary_dir = options.summary_dir,
                                      .events = event_options(options)};
  return is_deferred ? checkpoint_saver_hook::deferred(made) : checkpoint_saver_hook(made);
}

step_counter_hook make_step_counter_hook(const plain_options& options) {
  const auto& said = options.log_step_count_steps;
  const auto steps = said.is_default() ? std::optional(default_count_steps) : said.enabled();
  if (!options.is_chief || options.summary_dir.empty() || !steps) { return step_counter_hook::off(); }
  return step_counter_hook({.every_n_steps = *steps, .output_dir = options.summary_dir, .events = event_options(options)});
}

std::shared_ptr<summary_work> make_summary_work(const plain_options& options) {
  const auto period =
      choose_cadence({"save_summaries_steps", options.save_summaries_steps, "save_summaries_secs", options.save_summaries_secs},
                     cadence{.every_steps = default_summary_steps});
  if (!options.is_chief || options.summary_dir.empty() || !period) { return nullptr; }
  return summary_work::make({.output_dir = options.summary_dir,
                             .events = event_options(options),
                             .save_steps = steps_of(*period),
                             .save_secs = secs_of(*period),
                             .hparams = options.hparams});
}

session_settings make_session_settings(const plain_options& options, const checkpoint_saver_hook& saver) {
  session_settings settings;  // assigned one by one: with one initialiser clang-tidy 19 reports a leak of find_checkpoint
  settings.find_checkpoint = checkpoint_finder(options, saver);
  settings.stop_grace_period = detail::as_duration(options.stop_grace_period);
  settings.retry = options.retry;
  settings.restores_what_it_saves = saver.is_on();
  settings.on_unseekable = options.on_unseekable;
  settings.queue_runners = options.queue_runners;
  settings.stop_token = options.stop_token;
  settings.stop_on = options.stop_on;
  settings.preemption_grace = duration_of(options.preemption_grace);
  settings.clock = time_of(options);
  return settings;
}

void refuse_both(std::string_view option, std::string_view of_scaffold, bool both) {
  if (!both) { return; }
  throw invalid_argument_error(
      fmt::format("monitored_training_session: both the option {} and the scaffold's {} are given; give one of "
                  "them",
                  option, of_scaffold));
}

void check_roles(const std::string& master, bool is_chief, seconds_value max_wait, seconds_value recovery_wait) {
  if (!is_chief && master.empty()) {
    throw invalid_argument_error(
        "monitored_training_session: is_chief is false and master is empty; a worker needs the master whose "
        "chief it waits for, e.g. master = \"local:NAME\"");
  }
  if (!(max_wait.count() >= 0)) {
    throw invalid_argument_error(fmt::format("monitored_training_session: max_wait_secs is {}; it cannot be negative", max_wait.count()));
  }
  if (!(recovery_wait.count() > 0)) {
    throw invalid_argument_error(
        fmt::format("monitored_training_session: recovery_wait is {}; it must be above zero", recovery_wait.count()));
  }
}

}  // namespace stepwell
