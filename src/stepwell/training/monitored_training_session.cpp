// SPDX-License-Identifier: Apache-2.0
#include "stepwell/training/monitored_training_session.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"

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
  const auto period = choose_cadence({"save_checkpoint_steps", made.save_steps, "save_checkpoint_secs", made.save_secs},
                                     cadence{.every_secs = std::chrono::duration<double>(default_save_secs)});
  if (!set_period(made, period) || made.checkpoint_dir.empty()) { return checkpoint_saver_hook::off(); }
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

const std::string& event_directory(const std::string& summary_dir, const std::string& checkpoint_dir, bool has_metrics) {
  if (has_metrics && summary_dir.empty() && checkpoint_dir.empty()) {
    throw invalid_argument_error(
        "monitored_training_session: metrics are given, but neither summary_dir nor checkpoint_dir; give one of them, the metrics "
        "receive the values of its event files");
  }
  return summary_dir.empty() ? checkpoint_dir : summary_dir;
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
  if (!(max_wait.count() >= 0)) {
    throw invalid_argument_error(fmt::format("monitored_training_session: max_wait_secs is {}; it cannot be negative", max_wait.count()));
  }
  if (!(recovery_wait.count() > 0)) {
    throw invalid_argument_error(
        fmt::format("monitored_training_session: recovery_wait is {}; it must be above zero", recovery_wait.count()));
  }
}

}  // namespace stepwell::detail
