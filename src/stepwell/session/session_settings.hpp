// SPDX-License-Identifier: Apache-2.0
//
// Settings of a monitored session, including the retry policy. The raw session and the hooks are not settings: they are separate arguments.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
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
/// describes its data and that is saved with its position. If the fingerprint has changed, the saved position selects other examples. If a
/// source with the same fingerprint has another name than in the checkpoint, the source has no saved position.
enum class other_data_policy {
  warn,  ///< Log a warning. Continue at the saved position, or where the source is if there is no saved position.
  fail,  ///< Throw `failed_precondition_error`.
};

class queue_runner;
namespace summary {
class writer;
}

/// Settings of a monitored session. Each member has a default.
struct session_settings {
  /// The name of the session. Log messages of the session begin with "[NAME] ", and progress bars display it. May be empty.
  std::string name = {};
  /// The directory of event files, for hooks that write event files and are given no directory of their own. Empty if there is none.
  std::string event_directory = {};
  /// Function that returns the writer of the event files in `event_directory`. If null, a writer with default options is used.
  std::function<std::shared_ptr<summary::writer>()> event_writer = nullptr;
  /// Function that returns the checkpoint to restore. It is called at the start and in each recovery. If the function is empty or finds no
  /// checkpoint, the session uses the initial state: the values that the model had when the session was constructed. Before the session
  /// writes a variable, it verifies the whole checkpoint. The exception is a checkpoint from `open_newest`: it is read only once, directly
  /// into the variables, and if it is damaged, the next older checkpoint is restored.
  std::function<std::optional<checkpoint_reader>()> find_checkpoint = nullptr;
  /// The directory of the session's checkpoints, for hooks that are given no directory of their own. Empty if there is none.
  std::string directory = {};
  /// Maximum time for which `close` waits for threads and for I/O, including the last checkpoint. A recovery also waits for threads and
  /// I/O, with the same limit.
  /// @see contract CREATE-1
  stepwell::clock::duration stop_grace_period = std::chrono::seconds(120);
  /// If true, the session recovers from `aborted_error` and `unavailable_error`. If false, the session throws them to the caller.
  /// @see contract SING-1
  bool recover = true;
  retry_policy retry = {};  ///< Limit of recoveries, and the waits before them.
  /// If true, and if no checkpoint is found at the start, the session keeps a copy of the model's initial values, for recoveries.
  bool keep_initial_state = true;
  /// True if `find_checkpoint` finds the checkpoints that this session saves. The copy of the initial state is then freed before the first
  /// checkpoint is made, or as soon as there is a checkpoint.
  bool restores_what_it_saves = false;
  /// True if the batches continue those of an earlier run of the program. False for an evaluation: the batches then begin anew, so a source
  /// that cannot seek causes no warning.
  bool resumes = true;
  unseekable_policy on_unseekable = unseekable_policy::fail;  ///< Policy for a source that cannot seek back in a recovery.
  other_data_policy on_other_data = other_data_policy::warn;  ///< Policy for a source with other data than in the checkpoint.
  /// Queue runners. Their threads are started with the session and in each recovery, and stopped and joined at the close.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// A stop token of the application. If a stop is requested for this token, the loop of the session ends after the current step.
  std::stop_token stop_token = {};
  /// Signals that request a stop (see `io::signal_watch`). The session handles these signals from its construction until it is closed.
  std::vector<int> stop_on = {};
  /// Time after a signal of `stop_on` within which all data must be durable. Requires `stop_on`. If empty, there is no limit.
  std::optional<stepwell::clock::duration> preemption_grace = std::nullopt;
  /// If true, the session checks the promise of a model with an `update_fence`: between the end of a step and the call of `wait` in the
  /// next step, only variables marked with `variable_ref::early()` change. If a variable has changed, the step throws an error that names
  /// the variable, because the checkpoint could be a mixture of two steps. The check computes three checksums of the variables for each
  /// checkpoint that is copied during a step. If empty, the first such checkpoint and each 16th one after it are checked.
  std::optional<bool> check_update_fence = std::nullopt;
  /// The clock of the session. If null, the clock of the machine is used.
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

}  // namespace stepwell
