// SPDX-License-Identifier: Apache-2.0
#include "stepwell/training/evaluation.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"

#include <fmt/format.h>

namespace stepwell::detail {

checkpoint_reader open_checkpoint(const std::string& prefix, const evaluation_options& options) {
  checkpoint_reader reader(prefix, options.file_system);
  reader.verify();
  return reader;
}

session_setup setup_of(const evaluation_options& options) {
  return {.options = {.stop_token = options.stop_token, .clock = options.clock}, .resumes = false, .changes_state = false};
}

checkpoints_iterator_options following_of(const repeated_evaluation_options& options) {
  refuse_negative("max_number_of_evaluations", options.max_number_of_evaluations);
  refuse_negative("eval_interval_secs", options.eval_interval_secs);
  refuse_negative("timeout", options.timeout);
  refuse_negative("seconds_to_sleep", options.seconds_to_sleep);
  return {.min_interval_secs = options.eval_interval_secs,
          .wait = {.seconds_to_sleep = options.seconds_to_sleep,
                   .timeout = options.timeout,
                   .stop_token = options.stop_token,
                   .clock = options.evaluation.clock,
                   .file_system = options.evaluation.file_system},
          .timeout_fn = options.timeout_fn,
          .all_listed = options.all_listed,
          .cancel_token = options.evaluation.stop_token};
}

void log_evaluation(const std::string& checkpoint_path, std::int64_t evals, std::chrono::duration<double> took) {
  log_info(fmt::format("Finished evaluation of {}: {} steps in {:.3f} s", checkpoint_path, evals, took.count()));
}

}  // namespace stepwell::detail
