// SPDX-License-Identifier: Apache-2.0
//
// The arguments of monitored_training_session, by name (contract CREATE-1).
#pragma once

#include "stepwell/base/setting.hpp"
#include "stepwell/checkpoint/saver_options.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_config.hpp"
#include "stepwell/hooks/checkpoint_saver_listener.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/model/model_traits.hpp"
#include "stepwell/session/detail/source_lease.hpp"
#include "stepwell/session/retry_policy.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/threads/queue_runner.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stepwell {

/// Everything has a default. The periods have three states: not said, off (`none`, 0), or a value.
template<class Model>
struct training_options {
  /// Empty: this session alone. "local:NAME": with the other sessions of this process that name it, see `local_master`.
  std::string master = {};
  /// The chief restores, initialises, saves and counts; a worker waits for it and does none of that (CREATE-7).
  bool is_chief = true;
  /// How the model is made ready; null: a scaffold of its own, with its defaults.
  std::shared_ptr<stepwell::scaffold<Model>> scaffold = nullptr;
  /// Restored from at start, saved to; empty: neither.
  std::string checkpoint_dir = {};
  /// Every 600 s unless one of these is said. Both above zero: seconds are used, with a warning (D-8).
  setting<seconds_value> save_checkpoint_secs = {};
  setting<std::int64_t> save_checkpoint_steps = {};
  /// Every 100 steps unless one of these is said.
  setting<std::int64_t> save_summaries_steps = {};
  setting<seconds_value> save_summaries_secs = {};
  /// How often, in steps, steps a second are logged and written, where there is a directory for event files; 100 unless
  /// said.
  setting<std::int64_t> log_step_count_steps = {};
  /// Where event files go; empty: `checkpoint_dir`.
  std::string summary_dir = {};
  /// How many checkpoints to keep; 5 unless said, off: all.
  setting<int> max_to_keep = {};
  /// What to write at each due summary: `[](summary::writer& out, const result& r, const model& m, std::int64_t step)`.
  std::function<void(summary::writer&, const model_result<Model>&, const Model&, std::int64_t)> summary = nullptr;
  /// Every scalar that goes into event files goes there, too: `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`.
  /// Needs a directory for event files.
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  /// Written once into the event file: the settings of this run.
  std::optional<format::hparam_map> hparams = std::nullopt;
  /// Told of each checkpoint.
  std::vector<std::shared_ptr<checkpoint_saver_listener>> checkpoint_listeners = {};
  /// Everything else about saving, where the scaffold does not say it: retention, what to do when the disk is slow or fails, shards. `max_to_keep` above,
  /// where said, goes before the one in here.
  saver_options saver = {};
  /// Threads, and where I/O is done.
  session_config config = {};
  /// How long a worker waits for its chief; then `deadline_exceeded_error`.
  seconds_value max_wait_secs = 7200;
  /// Between two looks of a worker, where it is not woken (D-3).
  seconds_value recovery_wait = 1;
  /// Recovery from `aborted_error` and `unavailable_error` (D-2).
  retry_policy retry = {};
  /// Keep what the model holds at construction until there is a checkpoint, for a recovery to go back to.
  bool keep_initial_state = true;
  /// When the state went back and a source cannot.
  unseekable_policy on_unseekable = unseekable_policy::fail;
  /// Started, stopped and joined with the session.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// How long `close` waits for threads and for I/O, the last checkpoint included; then it throws `deadline_exceeded_error`, and what is
  /// still being written is left to itself (see `~saver`).
  seconds_value stop_grace_period_secs = 120;
  /// A stop of the application's is a stop of the session's.
  std::stop_token stop_token = {};
  /// Signals that ask for a stop, as `{SIGINT, SIGTERM}`: the loop ends after the step under way, whose state is saved at once;
  /// `stop_reason` names the signal. A second one ends the process at once. From construction until the session is closed; then
  /// what was arranged before is in force again.
  std::vector<int> stop_on = {};
  /// How long after such a signal everything must be on the disk: what would take longer, as measured on the saves so far, is
  /// not begun, and `close` waits no longer. See `plan_preemption`; what it said stands in the log, in `stop_reason` and in
  /// `metrics().preemption`. Give somewhat less than what you are given.
  setting<seconds_value> preemption_grace = {};
  /// Null: the machine's.
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

}  // namespace stepwell
