// SPDX-License-Identifier: Apache-2.0
//
// The options of `monitored_training_session`.
// @see contract CREATE-1
#pragma once

#include "stepwell/base/setting.hpp"
#include "stepwell/checkpoint/saver_options.hpp"
#include "stepwell/creation/scaffold.hpp"
#include "stepwell/creation/session_config.hpp"
#include "stepwell/hooks/checkpoint_saver_listener.hpp"
#include "stepwell/model/model_session.hpp"
#include "stepwell/model/model_traits.hpp"
#include "stepwell/session/detail/source_cursor.hpp"
#include "stepwell/session/session_settings.hpp"
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

/// Options of a training session. Every option has a default. Each period has three states: default, off (`none`, 0), or a value.
template<class Model>
struct training_options {
  /// Address of the master. Empty: none. "local:NAME": shared with the other sessions of this process that use the same name, see
  /// `local_master`.
  std::string master = {};
  /// Whether this session is the chief. The chief restores, initialises, saves and counts. A worker waits for the chief and does
  /// none of these.
  /// @see contract CREATE-7
  bool is_chief = true;
  /// Scaffold that prepares the model. Null: a new scaffold with its defaults.
  std::shared_ptr<stepwell::scaffold<Model>> scaffold = nullptr;
  /// Directory for restoring and saving checkpoints. Empty: neither.
  std::string checkpoint_dir = {};
  /// Periods between checkpoints. Default if neither is set: 600 s. If both are above zero, the seconds are used, with a warning.
  /// @see decision D-8
  setting<seconds_value> save_checkpoint_secs = {};
  setting<std::int64_t> save_checkpoint_steps = {};
  /// Periods between summaries. Default if neither is set: 100 steps.
  setting<std::int64_t> save_summaries_steps = {};
  setting<seconds_value> save_summaries_secs = {};
  /// Number of steps between two measurements of steps per second, which are logged and written if there is a directory for event
  /// files. Default: 100.
  setting<std::int64_t> log_step_count_steps = {};
  /// Directory of event files. Empty: `checkpoint_dir`.
  std::string summary_dir = {};
  /// Number of checkpoints to keep. Default: 5. Off: all.
  setting<int> max_to_keep = {};
  /// Function that writes each summary: `[](summary::writer& out, const result& r, const model& m, std::int64_t step)`.
  std::function<void(summary::writer&, const model_result<Model>&, const Model&, std::int64_t)> summary = nullptr;
  /// Metric writers that also receive every scalar of the event files:
  /// `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`. They need a directory for event files.
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  /// Settings of this run, written once to the event file.
  std::optional<format::hparam_map> hparams = std::nullopt;
  /// Listeners that are notified of each checkpoint.
  std::vector<std::shared_ptr<checkpoint_saver_listener>> checkpoint_listeners = {};
  /// All other options for saving: retention, shards, and the policies for a slow disk and for failures. Used unless the scaffold
  /// has its own. `max_to_keep` above has priority over the one in here, if it is set.
  saver_options saver = {};
  /// Threads and the I/O pool.
  session_config config = {};
  /// Time that a worker waits for its chief before it throws `deadline_exceeded_error`.
  seconds_value max_wait_secs = 7200;
  /// Interval between two polls of a worker that is not notified.
  /// @see decision D-3
  seconds_value recovery_wait = 1;
  /// Policy for recovery from `aborted_error` and `unavailable_error`.
  /// @see decision D-2
  retry_policy retry = {};
  /// Whether to keep a snapshot of the model's state at construction for recovery, until there is a checkpoint.
  bool keep_initial_state = true;
  /// Policy for a source that is not seekable when a recovery has restored an earlier state.
  unseekable_policy on_unseekable = unseekable_policy::fail;
  /// Queue runners that are started, stopped and joined with the session.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// Time that `close` waits for threads and I/O, including the last checkpoint. Then it throws `deadline_exceeded_error`, and
  /// writing continues in the background (see `~saver`).
  seconds_value stop_grace_period_secs = 120;
  /// Stop token of the application. A stop of this token stops the session.
  std::stop_token stop_token = {};
  /// Signals that request a stop, for example `{SIGINT, SIGTERM}`. The loop ends after the current step, and its state is saved at
  /// once; `stop_reason` names the signal. A second signal ends the process at once. The handlers are installed from construction
  /// until the session is closed; then the previous handlers are restored.
  std::vector<int> stop_on = {};
  /// Time after such a signal within which all data must be on disk. Work that would take longer, as measured on previous saves, is
  /// not begun, and `close` waits no longer than this. The result of `plan_preemption` is written to the log, to `stop_reason` and
  /// to `metrics().preemption`. Set a slightly shorter time than the scheduler grants.
  setting<seconds_value> preemption_grace = {};
  /// Null: the clock of the machine.
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

}  // namespace stepwell
