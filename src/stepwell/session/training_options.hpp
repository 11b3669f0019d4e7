// SPDX-License-Identifier: Apache-2.0
//
// The options of a session, including the retry policy, and the setup of a session: its options and where its state comes from. The raw
// session, the hooks, the scaffold and the summaries are not options: they are separate arguments.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/protocol/hook_options.hpp"
#include "stepwell/summary/writer.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// Limit of recoveries, and the waits before them: exponential backoff with jitter. TensorFlow, in contrast, retries at once and without a
/// limit.
struct retry_policy {
  /// Maximum number of recoveries in a row without progress. A step is progress if its number is higher than the numbers of all steps done
  /// before. If the session fails again after the last permitted recovery, this failure is thrown. If `max_attempts` is 0, the session does
  /// not recover.
  int max_attempts = 10;
  /// The wait before the first recovery. Each further wait without progress is `multiplier` times as long, up to `max_backoff`.
  seconds_value initial_backoff = 0.1;
  seconds_value max_backoff = 30;  ///< The longest wait.
  double multiplier = 2;           ///< The factor from one wait to the next, at least 1.
  /// Each wait is shortened by a random fraction between 0 and `jitter`, so that several sessions do not retry at the same time.
  double jitter = 0.5;
  /// Seed of the random fractions by which waits are shortened. Sessions with different seeds have different waits.
  std::uint64_t seed = 0;
};

/// Checks `policy`.
/// @errors `invalid_argument_error` that names the invalid member: a negative number, a multiplier below one, or a jitter above one.
void check_retry_policy(const retry_policy& policy);

/// Returns the wait before recovery number `attempt`, counted from 1 for the first recovery without progress. `draw` selects the random
/// fraction; use a different value for each wait of a session.
[[nodiscard]] clock::duration backoff_of(const retry_policy& policy, int attempt, std::uint64_t draw);

/// Returns true if `failure` is transient, so that a recovery may overcome it: an `aborted_error` or `unavailable_error`.
/// @see contract REC-1
[[nodiscard]] bool is_recoverable(const std::exception_ptr& failure) noexcept;

/// The reaction to a source that cannot seek back to the restored position.
enum class unseekable_policy {
  fail,  ///< Throw `failed_precondition_error` ("cannot rewind").
  skip,  ///< Continue from the current position and log a warning. The batches since the restored position are not repeated.
};

/// The reaction to a source whose data is not that of the checkpoint. A source is recognised by its fingerprint, a short text that
/// describes its data and that is saved with its position. If the fingerprint has changed, the saved position selects other examples. If
/// the source had another name when the checkpoint was saved, its saved position is not found.
enum class other_data_policy {
  warn,  ///< Log a warning. Continue at the saved position, or where the source is if there is no saved position.
  fail,  ///< Throw `failed_precondition_error`.
};

class group;
class queue_runner;
struct session_setup;
namespace summary {
class metric_writer;
}

/// Options of a training session, over a model or over a graph. Every option has a default. Each period has three states: the default, off
/// (`none` or 0), or a value. `scaffold` and `summaries(...)` depend on the type of the model. Therefore they are not options, but separate
/// arguments, like the hooks.
///
/// In addition to the model, a session needs memory for copies of the variables. `metrics().snapshot_bytes` reports the bytes that it
/// holds. The table shows the number of copies in the session of a chief:
/// | options                                            | copies |
/// |----------------------------------------------------|--------|
/// | no `checkpoint_dir`                                | 1 for recovery; 0 with `keep_initial_state = false` or `retry.max_attempts = 0` |
/// | `checkpoint_dir`, periods between checkpoints off  | as in the first row if there is no checkpoint at the start, otherwise 0 |
/// | `checkpoint_dir`                                   | 1 for each checkpoint in progress, see `saves.saver.max_staged_bytes`; otherwise 0 |
///
/// In the third row, the memory of a copy is freed only if no checkpoint begins within a minute.
struct training_options {
  /// The name of the session. Its log messages begin with "[NAME] ", and progress bars display it. May be empty.
  std::string name = {};
  /// The master, with which several sessions train one model. If empty, the session has no master. If "local:NAME", this session and all
  /// other sessions of this process with the same master train one model.
  std::string master = {};
  /// True: this session is the chief, which restores, initialises and saves the model, writes summaries, and measures steps per second.
  /// False: this session is a worker, which waits for the chief and does none of these. A worker needs a `master`.
  /// @see contract CREATE-7
  bool is_chief = true;
  /// Directory from which a chief restores checkpoints and in which it saves them. If empty, nothing is restored or saved. A restore needs
  /// no memory for a copy of the variables, with one exception: variables of strings and variables on a device are copied through temporary
  /// memory, one variable at a time.
  std::string checkpoint_dir = {};
  /// Directory of event files. If empty, `checkpoint_dir` is used. If that is empty, too, there are no event files.
  std::string summary_dir = {};
  /// Metric writers. They receive every scalar that is written to the event file:
  /// `{std::make_shared<summary::csv_writer>("run/metrics.csv")}`. They need a directory for event files. (They stand before the members with
  /// braces of their own: if a later value in the same braces throws, such as a writer that cannot open its file, g++ 12 destroys the values
  /// in inner braces twice.)
  std::vector<std::shared_ptr<summary::metric_writer>> metrics = {};
  /// The options of the default hook that saves checkpoints: `.saves = {.save_steps = 200}`. Default: every 600 s. A value other than the
  /// default needs a `checkpoint_dir`, except for `saver.file_system`, `saver.pool` and `saver.clock`, which the session uses, too. If a
  /// checkpoint becomes due while earlier ones are being written, its state is copied at once if there is memory for the copy
  /// (`saver.max_staged_bytes`). Otherwise the step waits for memory (`saver.when_busy`). If the scaffold has saver options, they replace
  /// `saves.saver`.
  checkpoint_saver_options saves = {};
  /// The options of the default hook that writes summaries: `.summaries = {.save_steps = 10}`. A value other than the default needs a directory
  /// for event files, or a destination of its own. If both periods are off, there are no summaries and no hyper-parameters.
  summary_saver_options summaries = {};
  /// The options of the default hook that measures steps per second, writes this rate to the event file, and logs it. A value other than the
  /// default needs a directory for event files. Without such a directory, the hook is off.
  step_counter_options step_counter = {};
  /// Numbers of threads for the model, and the pool of threads for I/O. A session over a model does not use the numbers; the model can read
  /// them with `model_session::config`.
  session_config config = {};
  /// Time that a worker waits for its chief, or a process of a group for the others, before it throws `deadline_exceeded_error`.
  seconds_value max_wait_secs = 7200;
  /// Interval at which a waiting worker checks whether its chief has made the model ready, if the worker cannot be notified.
  /// @see decision D-3
  seconds_value recovery_wait = 1;
  /// Policy for recoveries: the number of attempts, and the waits before them. The session recovers from `aborted_error` and
  /// `unavailable_error`.
  /// @see decision D-2
  retry_policy retry = {};
  /// If true, and if no checkpoint was restored, one copy of the variables is kept for recovery until a checkpoint is saved. First the copy
  /// holds the state at the start. If the first save fails, the copy holds the state of that save.
  bool keep_initial_state = true;
  /// Policy for a source that cannot seek back after a recovery has restored an earlier state.
  unseekable_policy on_unseekable = unseekable_policy::fail;
  /// Policy for a source whose dataset or seed is not the same as when the restored checkpoint was saved.
  other_data_policy on_other_data = other_data_policy::warn;
  /// If false, a checkpoint that contains a stop ends the session before its first step. Checkpoints contain the stops that a hook, the body
  /// of the loop or the application has requested with `request_stop`. If true, the session ignores the stop and trains on, for example
  /// because a criterion was changed. A stop that follows from the restored state, such as that of `stop_at_step`, ends the session in any
  /// case.
  /// @see decision D-42
  bool resume_after_stop = false;
  /// Queue runners that are started, stopped and joined with the session.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// Maximum time for which `close`, or a recovery, waits for threads and I/O. The time includes the last checkpoint of `close`. If the
  /// time is exceeded, `close` throws `deadline_exceeded_error`, and writing continues in the background (see `saver::close`).
  seconds_value stop_grace_period_secs = 120;
  /// Stop token of the application. When a stop is requested for this token, the session stops, too.
  std::stop_token stop_token = {};
  /// Signals that request a stop, for example `{SIGINT, SIGTERM}`. The loop ends after the current step. If the session saves checkpoints,
  /// it saves the state after this step at once. `stop_reason` names the signal. A second signal of the list has its default effect: it
  /// ends the process at once. The signal handlers are installed when the session is constructed. When it is closed or destroyed, the
  /// previous handlers are restored.
  std::vector<int> stop_on = {};
  /// Time after a signal of `stop_on` within which all data must be on disk, because the process will then be killed. Requires `stop_on`.
  /// If the measured speed of previous saves shows that a save would take longer, the save is not begun. `close` does not wait longer than
  /// this time. The log, `stop_reason` and `metrics().preemption` report whether the state is saved; see `plan_preemption`. Set a slightly
  /// shorter time than the scheduler grants.
  setting<seconds_value> preemption_grace = {};
  /// If true, the session checks that a model whose `step` takes an `update_fence` follows the rule of the fence: before `step` has called
  /// `update_fence::wait`, only variables that are marked with `variable_ref::early()` may change. If empty, the session checks the rule
  /// at the first checkpoint that it copies during a step, and at each 16th one after it.
  std::optional<bool> check_update_fence = std::nullopt;
  /// The processes that train this model together, see `group`. Rank 0 is the chief: it restores or initialises the state, sends it to the
  /// other processes and saves it. The others have no directories and no default hooks. When the group is formed, at the start and after
  /// the loss of a process, the session waits for missing processes at most for `max_wait_secs`. Cannot be combined with `master`. Null:
  /// this process trains alone.
  std::shared_ptr<stepwell::group> group = nullptr;
  /// Clock of the session. If null, the clock of the machine is used.
  std::shared_ptr<stepwell::clock> clock = nullptr;

  /// Converts to the setup of a `monitored_session`, which has no default hooks.
  /// @errors `invalid_argument_error` that names an option of a default hook, or of a worker, if one is given.
  operator session_setup() const;
};

/// The options of a session, and where its state comes from.
struct session_setup {
  training_options options = {};
  /// Function that returns the checkpoint to restore. It is called at the start and in each recovery. If it is null, the newest checkpoint
  /// of `options.checkpoint_dir` is restored. If there is no checkpoint, the session uses the initial state: the values that the model had
  /// when the session was constructed. Before the session writes a variable, it verifies the whole checkpoint. The exception is a checkpoint
  /// from `open_newest`: it is read only once, directly into the variables, and if it is damaged, the next older checkpoint is restored.
  std::function<std::optional<checkpoint_reader>()> find_checkpoint = nullptr;
  /// True if `find_checkpoint` finds the checkpoints that this session saves. If so, the copy of the initial state is freed before the
  /// session copies the state for its first checkpoint, or as soon as there is a checkpoint.
  bool restores_what_it_saves = false;
  /// True if the batches continue those of an earlier run of the program. False for an evaluation: the batches then begin anew, so a source
  /// that cannot seek causes no warning.
  bool resumes = true;
  /// False for an evaluation: its steps change nothing that a recovery has to restore. A recovery then repeats the batch that failed. It
  /// leaves the raw session, the state of hooks and the sources as they are.
  bool changes_state = true;
};

namespace detail {

template<class Setup>
concept is_session_setup = std::is_same_v<Setup, training_options> || std::is_same_v<Setup, session_setup>;

/// Return the options that are given although they have no effect without a directory of checkpoints, or of event files. Those that the session
/// itself reads, such as `saves.saver.clock`, are not among them. The names are those of messages.
[[nodiscard]] std::vector<std::string> given_for_checkpoints(const training_options& options);
[[nodiscard]] std::vector<std::string> given_for_events(const training_options& options);

/// Sets `is_chief` if the session has a group.
/// @errors `invalid_argument_error` if the role or a master is given, too.
void resolve_role(training_options& options);

/// Makes the directories absolute. Sets `summary_dir` to the directory of the event files, which may be `checkpoint_dir`. A worker has no
/// directories.
void resolve_directories(training_options& options);
/// Returns `events` with the file system, threads, clock and metric writers of the session, for a hook or for the session's event file.
[[nodiscard]] summary::writer_options event_options(const training_options& options, summary::writer_options events = {});
[[nodiscard]] session_target target_of(const training_options& options);
/// Returns true if the session keeps a copy of the initial state for recoveries.
[[nodiscard]] inline bool keeps_initial_state(const training_options& options) noexcept {
  return options.keep_initial_state && options.retry.max_attempts > 0;
}
/// Returns what a session does with the initial state of a raw session that the caller gives.
[[nodiscard]] inline initial_state initial_state_for(const training_options& options) noexcept {
  return detail::keeps_initial_state(options) ? initial_state::copied : initial_state::not_copied;
}
[[nodiscard]] inline initial_state initial_state_for(const session_setup& setup) noexcept {
  return setup.changes_state ? detail::initial_state_for(setup.options) : initial_state::unchanged;
}

}  // namespace detail
}  // namespace stepwell
