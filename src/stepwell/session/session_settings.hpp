// SPDX-License-Identifier: Apache-2.0
//
// What a monitored session needs to know besides its raw session and hooks.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/checkpoint_reader.hpp"
#include "stepwell/session/retry_policy.hpp"
#include "stepwell/session/unseekable_policy.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace stepwell {

class queue_runner;

/// Everything has a default.
struct session_settings {
  /// Where the session starts from, and where a recovery goes back to; empty, or nothing found: what the model held at
  /// construction.
  std::function<std::optional<checkpoint_reader>()> find_checkpoint = nullptr;
  /// How long `close`, and each recovery, waits for threads and for I/O, the last checkpoint included (contract CREATE-1).
  stepwell::clock::duration stop_grace_period = std::chrono::seconds(120);
  /// Recover from `aborted_error` and `unavailable_error`; without it they are the caller's (contract SING-1).
  bool recover = true;
  retry_policy retry = {};
  /// Without a checkpoint to start from: keep a copy of what the model held at construction, for a recovery to go back to.
  bool keep_initial_state = true;
  /// What this session saves is what `find_checkpoint` finds: that copy is let go once there is a checkpoint.
  bool restores_what_it_saves = false;
  unseekable_policy on_unseekable = unseekable_policy::fail;
  /// Started with the session and after each recovery, stopped and joined with it.
  std::vector<std::shared_ptr<queue_runner>> queue_runners = {};
  /// A stop of the application's is a stop of the session's.
  std::stop_token stop_token = {};
  /// Signals that ask for a stop (see `io::signal_watch`); from construction until the session is closed.
  std::vector<int> stop_on = {};
  /// How long after such a signal everything must be on the disk; nothing: there is no such time.
  std::optional<stepwell::clock::duration> preemption_grace = std::nullopt;
  /// Null: the machine's.
  std::shared_ptr<stepwell::clock> clock = nullptr;
};

}  // namespace stepwell
