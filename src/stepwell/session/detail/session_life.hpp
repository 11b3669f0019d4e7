// SPDX-License-Identifier: Apache-2.0
//
// The part of a session's core that knows neither raw session nor hooks: stops, failures, threads, and how it is left.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/function_ref.hpp"
#include "stepwell/creation/detail/source_positions.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/hook/detail/session_control.hpp"
#include "stepwell/hook/session_metrics.hpp"
#include "stepwell/hook/stop.hpp"
#include "stepwell/io/detail/signal_watch.hpp"
#include "stepwell/session/detail/recovery.hpp"
#include "stepwell/session/session_settings.hpp"
#include "stepwell/threads/coordinator.hpp"
#include "stepwell/threads/queue_runner.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

namespace stepwell {

/// Where something failed.
enum class step_stage { creation, source, before_run, run, after_run, boundary };

/// @threads The session's, but for `should_stop`, `why` and `is_closed`.
class session_life {
public:
  session_life(const session_life&) = delete;
  session_life& operator=(const session_life&) = delete;

  [[nodiscard]] session_control& control() noexcept { return control_; }
  [[nodiscard]] source_positions& positions() noexcept { return positions_; }
  [[nodiscard]] const session_settings& settings() const noexcept { return settings_; }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

  [[nodiscard]] bool should_stop() const noexcept {
    return is_closed_ || control_.signals()->stop_requested() || is_lost_ || (threads_.should_stop() && stopped_by_threads());
  }
  /// Why the loop ended: a stop, else a failure nobody went on after, else the end of the last source.
  [[nodiscard]] stop_reason why() const;
  /// How the session ends that is closed now. @pre Nothing has failed while closing.
  [[nodiscard]] session_ending ending() const;
  void note_end_of_source(bool ended) noexcept { source_ended_ = ended; }
  /// A session that does not recover throws what a thread reported, where another ends its loop (contract SING-4).
  void throw_if_singular() const;
  /// @errors `failed_precondition_error` after the end (RUN-1).
  void refuse_when_over() const;
  /// @errors `failed_precondition_error` where the state is bad, and not to be saved.
  void refuse_bad_state() const;

  /// @errors `failed_precondition_error` where there is no whole state between two steps to copy, or it is bad.
  void refuse_copy() const;

  /// The last failure, as far as nobody went on after it.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  /// Somebody goes on after the failure: it was none after all, or is overcome.
  [[gnu::cold]] void forget_failure() noexcept;
  /// Whether this very exception came out of a hook or of the session's own work, not out of the raw session (D-18).
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const noexcept {
    return failure != nullptr && failure == failure_ && !is_of_data();
  }
  /// Whether the last failure came out of the raw session or the source: there `out_of_range_error` is the end of the data.
  [[nodiscard]] bool is_of_data() const noexcept { return failed_stage_ == step_stage::run || failed_stage_ == step_stage::source; }
  /// Whether a recovery may overcome the last failure, which then is the one at its root (contract REC-1, WRAP-5).
  /// @errors That at the root, where it is another than the one thrown and there is no recovery.
  [[nodiscard]] bool can_recover();

  /// The try that comes next, from 1.
  [[nodiscard]] int attempt() const noexcept { return recovery_.tries() + 1; }
  /// What the hook that asked for the last rollback wants; takes it.
  [[nodiscard]] bool take_skip() noexcept { return std::exchange(skip_batch_, false); }
  /// The step at which the present raw session went on.
  [[nodiscard]] std::int64_t starts_at() const noexcept { return starts_at_; }
  /// The state is made ready by somebody else: a recovery takes nothing back that this session drew from its sources.
  [[nodiscard]] bool joins_others() const noexcept { return joins_others_; }

  /// What the session has been through.
  [[nodiscard]] session_metrics metrics() const;

protected:
  explicit session_life(session_settings settings);
  ~session_life();

  /// @errors What looking throws and will not pass.
  void look_ahead();
  /// Whether this is how whoever makes the session ready answers an interruption.
  [[nodiscard]] bool gave_up_waiting(const std::exception_ptr& failure) const noexcept;
  void start_runners();
  [[nodiscard]] deadline grace() const { return control_.within_process(control_.deadline_after(settings_.stop_grace_period)); }
  /// Signals are the program's again. @pre The session is closed.
  void leave_process() noexcept { end_signals_.reset(); }
  /// What the threads of a session that was left had to say is said.
  void join(const deadline& until);
  void leave_threads() noexcept;
  /// What a recovery may overcome is no reason to fail while leaving (contract WRAP-1, REC-3).
  void overcome_or_throw(function_ref<void()> action) const;
  /// Why threads had the loop end; nothing where a recovery goes on instead.
  [[nodiscard]] stop_reason stop_of_threads() const;
  /// What a hook asked for, as the failure of its run.
  /// @errors `aborted_error`, always; `failed_precondition_error` where the state is somebody else's.
  [[noreturn, gnu::cold]] void roll_back();
  /// Says what follows from a rollback that was asked for.
  void answer_rollback();

  session_settings settings_;
  session_control control_;
  coordinator threads_;
  recovery recovery_;
  source_positions positions_;
  initial_state initial_;
  checkpoint_search search_;
  std::exception_ptr failure_;
  step_stage failed_stage_ = step_stage::run;
  bool is_half_stepped_ = false;  // a step, or a restore, began and did not end
  bool skip_batch_ = false;
  bool joins_others_ = false;
  std::int64_t starts_at_ = 0;
  std::int64_t last_step_done_ = -1;  // by this session
  std::int64_t creations_ = 0;
  std::int64_t rollbacks_ = 0;
  std::atomic<bool> is_left_ = false;  // its threads were stopped by us, and are joined
  std::atomic<bool> is_lost_ = false;
  std::atomic<bool> source_ended_ = false;
  std::atomic<bool> is_closed_ = false;

private:
  struct stop_for_application {
    std::shared_ptr<session_signals> signals;
    void operator()() const { signals->request_stop({stop_cause::requested, "the application's stop token"}); }
  };
  struct stop_for_threads {
    coordinator* threads;
    void operator()() const { threads->request_stop(); }
  };

  void watch_for_end();
  [[gnu::cold]] bool stopped_by_threads() const noexcept;

  std::optional<std::stop_callback<stop_for_threads>> on_own_stop_;
  std::stop_callback<stop_for_application> on_stop_;
  std::unique_ptr<io::signal_watch> end_signals_;
};

}  // namespace stepwell
