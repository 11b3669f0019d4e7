// SPDX-License-Identifier: Apache-2.0
//
// The parts of a session that do not depend on the types of its raw session and hooks: the pieces of work of the session protocol, and the
// queries that the protocol makes between them.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/owner_process.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/creation/session_creation.hpp"
#include "stepwell/io/detail/signal_watch.hpp"
#include "stepwell/protocol/detail/boundary_requests.hpp"
#include "stepwell/protocol/detail/run_trace.hpp"
#include "stepwell/protocol/session_signals.hpp"
#include "stepwell/session/detail/recovery.hpp"
#include "stepwell/session/detail/session_protocol.hpp"
#include "stepwell/session/detail/source_registrations.hpp"
#include "stepwell/session/training_options.hpp"
#include "stepwell/threads/coordinator.hpp"
#include "stepwell/threads/queue_runner.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell {

/// The stage of a run or session in which a failure occurred.
enum class step_stage { creation, source, before_run, run, after_run, boundary };

/// The work of a session, and its state.
/// @threads The session's thread, except `should_stop`, `why`, `is_closed` and `metrics`.
class session_engine : public detail::session_gate {
public:
  ~session_engine() override;

  [[nodiscard]] boundary_requests& requests() noexcept { return requests_; }
  [[nodiscard]] const boundary_requests& requests() const noexcept { return requests_; }
  [[nodiscard]] detail::source_positions& positions() noexcept { return positions_; }
  /// Returns the registrations of sources that the caller passes to each call separately.
  [[nodiscard]] detail::source_registrations& sources() noexcept { return sources_; }
  [[nodiscard]] const training_options& options() const noexcept { return setup_.options; }
  [[nodiscard]] coordinator& threads() noexcept { return threads_; }
  [[nodiscard]] detail::session_protocol<session_engine>& protocol() noexcept { return protocol_; }

  /// Executes one unit of work of the protocol. `attempt` is for `attach_source` and `step`.
  /// @errors Those of the work.
  void call(detail::piece what, detail::step_attempt* attempt);

  // ---- questions

  [[nodiscard]] bool should_stop() const noexcept { return state_.is_over() || is_stop_due(); }
  /// Returns true if a stop was requested, or a thread of the session has stopped for good.
  [[nodiscard]] bool is_stop_due() const noexcept {
    return requests_.signals()->stop_requested() || (threads_.should_stop() && stopped_by_threads());
  }
  /// Called when an operation begins: the body of the loop has handled the last step. Works commit the states that they hold until then.
  void end_body() noexcept { requests_.works().end_body(); }
  /// Returns true if the next step may begin at once: the loop is not over, no recovery is due, no work holds a state, and no thread of the
  /// session has stopped. If it returns false, the protocol determines what comes next.
  [[nodiscard, gnu::always_inline]] bool may_step_at_once() const noexcept {
    return !state_.is_over() && requests_.signals()->clear_to_loop() && !threads_.should_stop();
  }
  /// Returns the reason why the loop ended: a stop; otherwise a failure after which the caller did not continue; otherwise the end of the
  /// last source.
  [[nodiscard]] stop_reason why() const;
  /// @errors `failed_precondition_error` before the first creation.
  [[nodiscard]] std::int64_t global_step() const;
  /// Returns false before the first creation of a raw session that is not given by the caller.
  [[nodiscard]] virtual bool has_raw() const noexcept = 0;
  /// Returns true if a recovery overcomes the last failure. If that failure is not transient, but a thread has failed with one that is, the
  /// failure of the thread becomes the last failure. @see contract WRAP-5
  [[nodiscard]] bool can_recover();
  /// Returns true if the session has to be created anew before the next run. @see contract WRAP-4
  /// @errors `failed_precondition_error` after the end. @see contract RUN-1
  [[nodiscard]] bool is_recovery_due();
  /// Returns true if a run may begin at once, unless the session is closed.
  [[nodiscard, gnu::always_inline]] bool is_clear_to_run() const noexcept { return requests_.signals()->clear_to_run(); }
  /// Like `is_recovery_due`, before a step function, which may be called after a stop by a hook.
  /// @errors `failed_precondition_error` if the session is closed.
  [[nodiscard]] bool is_recovery_due_for_step_fn();
  /// Returns the last failure.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }
  /// Returns true if the batch of the last rollback is to be skipped, as its hook requested. Further calls return false.
  [[nodiscard]] bool take_skip() noexcept { return std::exchange(skip_batch_, false); }
  /// Throws the failure that a thread reported, if the session does not recover. @see contract SING-4
  void check_threads() const;
  /// Returns true if the end of the loop, after a stop, ends the training of the other processes of a group, too.
  [[nodiscard]] bool must_leave_group() const noexcept { return options().group && should_stop(); }
  /// Returns true if a recovery failed with `failure` because of a stop while the processes of a group waited for each other. Forgets the
  /// failure then: the loop ends as after any stop.
  [[nodiscard]] bool ends_in_formation(const std::exception_ptr& failure) noexcept;
  /// Returns the last step done, also if other sessions share the model.
  [[nodiscard]] std::int64_t step_reached() const noexcept;
  /// Returns the position of a loop after a recovery of a session that had reached step `reached`.
  [[nodiscard]] detail::loop_place place_after_recovery(std::int64_t reached) const;
  /// Returns true if the end of the data ends the loop; false if a thread that feeds it has failed and a recovery is due.
  [[nodiscard]] bool ends_with_data();
  /// Checks that the session accepts runs.
  /// @errors `failed_precondition_error` if a hook has requested a stop, or the session is closed.
  /// @see contract RUN-1
  void throw_if_closed() const;
  /// Checks that the state can be copied.
  /// @errors `failed_precondition_error` if the state is bad or inconsistent, or the session is closed.
  void check_copy() const;
  /// Returns true if exactly this exception came out of a hook or of the session's own work, not out of the raw session. @see D-18
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const noexcept {
    return failure != nullptr && failure == failure_ && !is_of_data();
  }
  /// Returns true if the last failure is the end of the data. @see D-18
  [[nodiscard]] bool is_end_of_data() const noexcept { return failure_kind_ == errc::out_of_range && is_of_data(); }
  /// Returns true if the last failure came out of the raw session or the source, where `out_of_range_error` is the end of the data.
  [[nodiscard]] bool is_of_data() const noexcept { return failed_stage_ == step_stage::run || failed_stage_ == step_stage::source; }
  /// Returns the step at which the current raw session began.
  [[nodiscard]] std::int64_t starts_at() const noexcept { return starts_at_.load(std::memory_order_relaxed); }
  [[nodiscard]] session_metrics metrics() const;

  /// Returns the step that `session_protocol::save_now` has saved.
  /// @errors `deadline_exceeded_error` if the save was left out, because the process is about to end.
  [[nodiscard]] std::int64_t step_saved_on_request() const;

  // ---- events

  void note_end_of_source(bool ended) noexcept { source_ended_ = ended; }
  /// Notifies the hooks of a failure and drops the requests of the failed step.
  [[gnu::noinline, gnu::cold]] void on_failure(step_stage stage, std::exception_ptr failure, int attempt = 1) noexcept;
  /// Clears the last failure: either it was not a failure, or the loop continues after it.
  [[gnu::cold]] void forget_failure() noexcept;

  // ---- operations that are one piece of work

  [[nodiscard]] const detail::owner_process& owner() const noexcept { return owner_; }
  /// @errors `failed_precondition_error` before the first creation.
  void throw_unless_started() const;
  /// Throws `failed_precondition_error` in a child process made by `fork`.
  void check_process() const;

  /// Copies the state that a checkpoint would contain, into `memory`, or into new memory if `memory` is empty.
  /// @errors Those of `check_copy` and `snapshot::capture`.
  snapshot copy_state(std::optional<snapshot_pool::buffer> memory);
  /// Closes the session after an error: calls `on_error` of the hooks unless they were notified already, does not call `end`, and waits
  /// until all pending I/O has finished.
  /// @see contract CLOSE-5
  void abandon(std::exception_ptr failure) noexcept;
  /// Stops and joins the session's threads without calling hooks. Pending I/O continues.
  void shut_down() noexcept;

protected:
  /// Creates the engine. `is_given`: the caller provides the raw session, which is used for all creations. `may_trace`: a hook may request
  /// a trace of a boundary.
  session_engine(session_setup&& setup, bool is_given, bool may_trace);

  /// Returns true if the boundary has work to do. The caller passes `may_trace` again, as a constant on the fast path.
  [[nodiscard]] bool is_boundary_due(bool may_trace) const noexcept { return (may_trace && requests_.trace()) || requests_.due(); }
  [[nodiscard]] bool must_recover();
  /// Starts the time limit of a close.
  void begin_closing();
  /// Throws the rollback that a hook requested, as the failure of its run.
  [[noreturn, gnu::cold]] void roll_back();

  detail::owner_process owner_;
  session_setup setup_;
  boundary_requests requests_;
  coordinator threads_;
  std::exception_ptr failure_;
  bool is_before_step_ = false;                    // `before_run` of the hooks is called
  std::optional<errc> failure_kind_;               // that of `failure_`
  std::atomic<std::int64_t> last_step_done_ = -1;  // the last step done by this session, read by any thread
  struct close_progress {
    deadline until;
    detail::error_collector failures;
  };
  std::optional<close_progress> closing_;  // from `end_hooks` on

private:
  friend class detail::session_protocol<session_engine>;

  struct stop_for_application {
    std::shared_ptr<session_signals> signals;
    void operator()() const { signals->request_stop({stop_cause::stop_token, "the application's stop token"}); }
  };
  struct stop_for_threads {
    coordinator* threads;
    void operator()() const { threads->request_stop(); }
  };

  // Functions of the raw session. @pre There is one, except for `make`.
  [[nodiscard]] virtual std::int64_t raw_step() const noexcept = 0;
  [[nodiscard]] virtual variable_list raw_variables() = 0;
  /// Returns the fence of the raw session, or null. @see detail::fence_of
  [[nodiscard]] virtual update_fence* fence() noexcept = 0;
  /// Calls `action` while no other session runs a step on the same model or restores it.
  virtual void while_alone(function_ref<void()> action) = 0;
  /// Like `while_alone`. During `action`, `raw_variables` has the current values, even if the raw session must pull them.
  virtual void with_values(function_ref<void()> action) = 0;
  virtual void make(session_creation& creation) = 0;
  virtual void close_made() = 0;
  /// Sends the values of `raw_variables` to where the variables are. @see detail::push_variables
  virtual void push() = 0;

  // Functions of the hooks.
  [[nodiscard]] virtual variable_list hook_variables() = 0;
  /// Returns the call of a hook that has thrown, see `hook_set`.
  [[nodiscard]] virtual detail::hook_call take_failed_call() noexcept = 0;
  virtual void begin_hooks() = 0;
  virtual void notify_created() = 0;
  virtual void notify_failure(const std::exception_ptr& failure, int attempt) noexcept = 0;
  /// Returns false if no hook saves.
  virtual bool request_save() = 0;
  virtual void end_hooks(detail::error_collector& failures) = 0;

  // Further questions of the protocol.
  [[nodiscard]] bool is_boundary_due() const noexcept { return is_boundary_due(may_trace_); }
  /// Returns true if `failure` is the result of an interruption of the creation.
  [[nodiscard]] bool was_interrupted(const std::exception_ptr& failure) const noexcept;
  void clear_interruption() { requests_.signals()->clear_interruption(); }
  /// Stores the failure of a creation, for the piece `creation_failed`.
  void set_creation_failure(std::exception_ptr failure) noexcept { creation_failure_ = std::move(failure); }
  /// Returns the time at which the next attempt of a recovery is due. Valid after the piece `leave_failed`.
  [[nodiscard]] clock::time_point next_attempt() const noexcept { return next_attempt_; }
  /// Checks that a save is allowed. @errors `failed_precondition_error` if it is not.
  void check_save() const;

  // Pieces of work.
  void find_checkpoint();
  void make_raw();
  void begin_hooks_or_log();
  void finish_creation();
  void handle_creation_failure();
  void leave_failed();
  void process_boundary_or_fail();
  void save_on_request();
  void finish_close();

  [[nodiscard]] bool is_group_worker() const noexcept { return options().group && !options().is_chief; }
  void form_group();
  [[nodiscard]] std::function<void()> check_of_formation();
  [[nodiscard]] std::optional<std::int64_t> running_step() const;
  void send_state();
  void receive_state(session_creation& creation);
  void share_directory();
  void leave_group() noexcept;
  void watch_for_end();
  void watch_grace_from(clock::time_point begin);
  void note_created();
  void answer_rollback();
  void start_runners();
  void process_boundary();
  void process_requests(const deadline& until);
  void save_state(std::vector<boundary_work*> saves, bool process_ends, const deadline& until);
  bool save_with(boundary_work& work, const boundary_state& state, deadline until);
  [[nodiscard]] boundary_state compose_for_save(bool process_ends);
  void warn_of_no_variables(const variable_list& saved);
  void check_names();
  [[nodiscard]] boundary_state compose();
  void adopt_stop_of_threads();
  void join_and_drain();
  void join(const deadline& until);
  void leave_threads() noexcept;
  void close_raw() noexcept;
  void settle_fence() noexcept;
  [[nodiscard]] update_fence* prepared_fence() noexcept;
  void throw_if_bad_state(std::string_view verb, std::string_view what) const;
  void log_or_throw(function_ref<void()> action) const;
  [[nodiscard]] deadline grace() const { return requests_.limits().within_process(requests_.limits().after_stop()); }
  [[nodiscard]] run_ending ending(const std::exception_ptr& failure) const;
  [[nodiscard]] stop_reason stop_of_threads() const;
  void log_failed(step_stage stage, const std::exception_ptr& failure) noexcept;
  void set_failure(step_stage stage, std::exception_ptr failure) noexcept;
  [[nodiscard, gnu::cold]] bool stopped_by_threads() const noexcept;
  [[nodiscard]] bool failed_by_thread() noexcept;

  bool is_given_;
  bool may_trace_;
  detail::session_protocol<session_engine> protocol_;
  recovery recovery_;
  detail::source_positions positions_;
  detail::source_registrations sources_;  // destroyed before `positions_`
  std::shared_ptr<recovery_copy> copy_ = std::make_shared<recovery_copy>();
  detail::initial_values initial_;
  detail::checkpoint_search search_;
  bool has_left_out_save_ = false;  // since the last `save_on_request`
  std::exception_ptr creation_failure_;
  clock::time_point next_attempt_ = {};
  step_stage failed_stage_ = step_stage::run;
  bool skip_batch_ = false;
  bool has_seen_variables_ = false;  // those of the first save
  bool joins_others_ = false;        // another session makes the state ready; a recovery does not rewind the sources of this session
  std::atomic<std::int64_t> starts_at_ = 0;
  std::atomic<std::int64_t> creations_ = 0;
  std::atomic<std::int64_t> rollbacks_ = 0;
  std::int64_t state_version_;
  std::string stop_cause_;  // of the stop in the state that was composed last
  std::string stop_text_;
  std::string directory_of_chief_;            // of the group
  unsigned fenced_saves_ = 0;                 // number of saves that may be copied during a step
  std::atomic<bool> threads_joined_ = false;  // this session stopped and joined its threads
  std::atomic<bool> source_ended_ = false;
  std::optional<std::stop_callback<stop_for_threads>> on_own_stop_;
  std::stop_callback<stop_for_application> on_stop_;
  alarm late_warning_;  // set by the thread of `end_signals_`
  std::unique_ptr<io::signal_watch> end_signals_;
};

}  // namespace stepwell
