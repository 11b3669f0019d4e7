// SPDX-License-Identifier: Apache-2.0
#include "stepwell/training/monitored_training_session.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/hooks/detail/save_budget.hpp"
#include "stepwell/io/file_system.hpp"

#include <fmt/format.h>

namespace stepwell::detail {

namespace {

constexpr double default_save_secs = 600;            // contract CREATE-3
constexpr std::int64_t default_summary_steps = 100;  // contract CREATE-2
constexpr std::int64_t default_count_steps = 100;    // contract CREATE-1

/// Sets the periods of `made`. Returns false if they are off.
template<class Options>
bool set_period(Options& made, const std::optional<cadence>& period) {
  if (!period) { return false; }
  made.save_secs = period->every_secs ? setting<seconds_value>(*period->every_secs) : none;
  made.save_steps = period->every_steps ? setting<std::int64_t>(*period->every_steps) : none;
  return true;
}

}  // namespace

checkpoint_saver_hook default_saver_hook(checkpoint_saver_options made, bool is_deferred) {
  const cadence_setting periods{"save_checkpoint_steps", made.save_steps, "save_checkpoint_secs", made.save_secs};
  const bool has_budget = uses_budget("save_checkpoint_overhead", made.save_overhead, made.save_interval, periods);
  const auto otherwise = made.save_overhead.is_default()
                             ? std::optional(cadence{.every_secs = std::chrono::duration<double>(default_save_secs)})
                             : std::nullopt;
  const bool has_period = set_period(made, choose_cadence(periods, otherwise));
  if ((!has_period && !has_budget) || made.checkpoint_dir.empty()) { return checkpoint_saver_hook::off(); }
  return is_deferred ? checkpoint_saver_hook::deferred(made) : checkpoint_saver_hook(made);
}

step_counter_hook default_counter_hook(step_counter_options made) {
  if (made.every_n_steps.is_default()) { made.every_n_steps = default_count_steps; }
  if (made.output_dir.empty() || !made.every_n_steps.enabled()) { return step_counter_hook::off(); }
  return step_counter_hook(std::move(made));
}

std::shared_ptr<summary_work> default_summary_work(summary_saver_options made) {
  const auto period = choose_cadence({"save_summaries_steps", made.save_steps, "save_summaries_secs", made.save_secs},
                                     cadence{.every_steps = default_summary_steps});
  if (!set_period(made, period) || made.output_dir.empty()) { return nullptr; }
  return std::make_shared<summary_work>(std::move(made));
}

std::string absolute(const std::string& directory) { return value_or_throw(io::absolute_path(directory)); }

void check_directories(const std::string& checkpoint_dir, const std::string& summary_dir,
                       std::initializer_list<directory_user> of_checkpoints, std::initializer_list<directory_user> of_events) {
  const auto refuse_given = [](std::initializer_list<directory_user> options, std::string_view missing) {
    for (const auto& [name, is_given] : options) {
      if (!is_given) { continue; }
      throw invalid_argument_error(
          fmt::format("monitored_training_session: {} is given, but {}; without it, the option has no effect", name, missing));
    }
  };
  if (!checkpoint_dir.empty()) { return; }
  refuse_given(of_checkpoints, "checkpoint_dir is not, the directory of the checkpoints");
  if (summary_dir.empty()) { refuse_given(of_events, "neither summary_dir nor checkpoint_dir, one of which holds the event files"); }
}

void throw_both_given(std::string_view option, std::string_view of_scaffold) {
  throw invalid_argument_error(
      fmt::format("monitored_training_session: both the option {} and the scaffold's {} are given; give one of them", option, of_scaffold));
}

void check_roles(const session_target& target, seconds_value max_wait, seconds_value recovery_wait) {
  if (!target.is_chief && target.master.empty()) {
    throw invalid_argument_error(
        "monitored_training_session: is_chief is false and master is empty; a worker needs the master whose chief it waits for, e.g. "
        "master = \"local:NAME\"");
  }
  refuse_negative("intra_op_parallelism_threads", target.config.intra_op_parallelism_threads);
  refuse_negative("inter_op_parallelism_threads", target.config.inter_op_parallelism_threads);
  if (!(max_wait.count() >= 0)) {
    throw invalid_argument_error(fmt::format("monitored_training_session: max_wait_secs is {}; it cannot be negative", max_wait.count()));
  }
  if (!(recovery_wait.count() > 0)) {
    throw invalid_argument_error(
        fmt::format("monitored_training_session: recovery_wait is {}; it must be above zero", recovery_wait.count()));
  }
}

void check_not_negative(const setting<std::int64_t>& log_step_count_steps, seconds_value log_every_secs, const setting<int>& max_to_keep,
                        seconds_value stop_grace_period_secs, const setting<seconds_value>& preemption_grace) {
  refuse_negative("log_step_count_steps", log_step_count_steps);
  refuse_negative("log_every_secs", log_every_secs);
  refuse_negative("max_to_keep", max_to_keep);
  refuse_negative("stop_grace_period_secs", stop_grace_period_secs);
  refuse_negative("preemption_grace", preemption_grace);
}

std::optional<format::hparam_map> copied(const std::optional<format::hparam_map>& option) { return option; }
std::vector<std::shared_ptr<checkpoint_saver_listener>> copied(const std::vector<std::shared_ptr<checkpoint_saver_listener>>& option) {
  return option;
}
saver_options copied(const saver_options& option) { return option; }

saver_options completed_saver_options(const saver_options& given, const setting<int>& max_to_keep, const std::shared_ptr<clock>& time,
                                      const std::shared_ptr<io::pool>& pool) {
  auto made = given;
  if (!max_to_keep.is_default()) { made.max_to_keep = max_to_keep; }
  if (!made.clock) { made.clock = time ? time : system_clock(); }
  if (!made.pool) { made.pool = pool; }
  check_saver_options(made);
  return made;
}

summary::writer_options event_options(const saver_options& of_checkpoints, const std::shared_ptr<clock>& time,
                                      const std::vector<std::shared_ptr<summary::metric_writer>>& metrics) {
  summary::writer_options made;
  if (of_checkpoints.file_system) { made.files = of_checkpoints.file_system; }
  if (of_checkpoints.pool) { made.threads = of_checkpoints.pool; }
  made.time = time ? time : system_clock();
  made.metrics = metrics;
  return made;
}

std::function<std::shared_ptr<summary::writer>()> event_writer_of(const std::string& directory, summary::writer_options how) {
  if (directory.empty()) { return nullptr; }
  return [directory, how = std::move(how)] { return summary::writer::shared(directory, how); };
}

session_settings settings_for(const checkpoint_saver_hook& saver, const std::string& directory, const saver_options& how,
                              const std::vector<std::shared_ptr<queue_runner>>& runners, const std::vector<int>& stop_on) {
  session_settings made;  // assigned one by one: with one initialiser clang-tidy 19 reports a leak of find_checkpoint
  if (saver.is_on()) {
    made.find_checkpoint = saver.checkpoint_finder();
  } else if (!directory.empty()) {
    made.find_checkpoint = [directory, basename = how.basename, files = how.file_system] {
      return stepwell::open_newest(directory, basename, files);
    };
  }
  made.restores_what_it_saves = saver.is_on();
  made.directory = directory;
  made.queue_runners = runners;
  made.stop_on = stop_on;
  return made;
}

}  // namespace stepwell::detail
