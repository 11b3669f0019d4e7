// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/session_engine.hpp"

#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/checkpoint/find_checkpoints.hpp"
#include "stepwell/group/group.hpp"
#include "stepwell/protocol/detail/run_trace.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/state_names.hpp"
#include "stepwell/summary/writer.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <utility>

namespace stepwell {

using detail::piece;
using detail::session_phase;

namespace {

/// Returns the reason for the end of a loop after `failure`, which has the kind `kind`. `failure` is null if C++ cannot identify the
/// exception. `is_of_data`: the failure came out of the raw session or the source, where `out_of_range_error` is the end of the data.
stop_reason reason_of(const std::exception_ptr& failure, std::optional<errc> kind, bool is_of_data) noexcept try {
  if (failure == nullptr) { return {stop_cause::error, "an exception outside the session"}; }
  const auto cause = kind == errc::out_of_range && is_of_data ? stop_cause::end_of_data
                     : kind == errc::nan_loss                 ? stop_cause::nan
                                                              : stop_cause::error;
  return {cause, detail::text_of(failure)};
} catch (...) {  // no memory for the text
  return {stop_cause::error, {}};
}

/// Throws `failed_precondition_error`: there can be no further run. @see contract RUN-1
[[noreturn]] void throw_after_end(bool is_closed) {
  if (is_closed) { throw failed_precondition_error("run called on a closed session; create a new session"); }
  throw failed_precondition_error("Run called even after should_stop requested. Check should_stop() before each run");
}

/// Returns what a session in `phase` does, for a warning that it has not ended in time.
std::string_view activity_in(session_phase phase) noexcept {
  using enum session_phase;
  switch (phase) {
    case created:
    case begun:
    case creating: return "the session is being created: a hook, the model or the disk has not answered";
    case stepping: return "a step has not ended: the model, the source or a hook has not returned";
    case at_boundary:
    case saving: return "a checkpoint is being made, or a hook has not returned";
    case ending: return "a hook has not returned from `end`";
    case finishing: return "the last checkpoint, a thread of a hook or the disk has not ended";
    default: return "the program has not closed the session";
  }
}

/// Returns `setup` with absolute directories, a clock, and a function that finds checkpoints if there is a directory.
session_setup resolved(session_setup&& setup) {
  auto& options = setup.options;
  detail::resolve_role(options);
  detail::resolve_directories(options);
  if (!options.clock) { options.clock = system_clock(); }
  if (!setup.find_checkpoint && !options.checkpoint_dir.empty()) {
    setup.find_checkpoint = [directory = options.checkpoint_dir, basename = options.saves.saver.basename,
                             files = options.saves.saver.file_system] { return open_newest(directory, basename, files); };
  }
  return std::move(setup);
}

}  // namespace

session_engine::session_engine(session_setup&& setup, bool is_given, bool may_trace)
    : setup_(resolved(std::move(setup))), requests_(options().clock), threads_(options().clock, {}, options().name), is_given_(is_given),
      may_trace_(may_trace), protocol_(state_, *this), recovery_(options().retry, requests_), search_(setup_.find_checkpoint),
      state_version_(state_version), on_stop_(options().stop_token, stop_for_application{requests_.signals()}) {
  auto& facts = requests_.facts();
  facts.name = options().name;
  facts.directory = options().checkpoint_dir;
  facts.files = options().saves.saver.file_system;
  facts.event_directory = options().summary_dir;
  facts.resume_after_stop = options().resume_after_stop;
  facts.group = options().group;
  facts.make_event_writer = [directory = options().summary_dir, writer_options = detail::event_options(options())] {
    return summary::writer::shared(directory, writer_options);
  };
  facts.metrics = [this] { return metrics(); };
  positions_.set_resumes(setup_.resumes);
  positions_.set_log_name(options().name);
  watch_for_end();
}

session_engine::~session_engine() = default;

void session_engine::watch_for_end() {
  const auto grace = options().preemption_grace.enabled();
  detail::refuse_negative("preemption_grace", options().preemption_grace);
  detail::refuse_negative("stop_grace_period_secs", options().stop_grace_period_secs);
  if (grace && options().stop_on.empty()) {
    throw invalid_argument_error("preemption_grace is given, but stop_on is empty; add a signal to stop_on, e.g. SIGTERM");
  }
  requests_.signals()->set_grace_of_process(grace ? std::optional(detail::as_duration(*grace)) : std::nullopt);
  requests_.limits().set_grace_of_stop(detail::as_duration(options().stop_grace_period_secs));
  if (options().stop_on.empty()) { return; }
  end_signals_ = value_or_throw(io::signal_watch::start(options().stop_on, [this](int signal) {
    const auto what = "the process was sent " + io::signal_name(signal);
    const auto now = requests_.facts().time->now();
    watch_grace_from(now);
    requests_.signals()->end_process(what, now);
    const log_scope named(options().name);
    log_info(what + "; the session stops after the step that is running");
  }));
}

/// Warns if the session has not ended when the grace that began at `begin` is over, and says what has not ended.
void session_engine::watch_grace_from(clock::time_point begin) {
  const auto grace = requests_.signals()->grace_of_process();
  if (!grace || *grace >= clock::time_point::max() - begin) { return; }
  late_warning_ = alarm(requests_.facts().time, begin + *grace, [this] {
    const log_scope named(options().name);
    log_warning(fmt::format("the grace of {} s after the signal is over, and the session has not ended: {}",
                            options().preemption_grace.enabled()->count(), activity_in(state_.phase())));
  });
}

void session_engine::call(piece what, detail::step_attempt* attempt) {
  const log_scope named(options().name);
  switch (what) {
    case piece::find_checkpoint: return find_checkpoint();
    case piece::begin_hooks: return begin_hooks_or_log();
    case piece::make_raw: return make_raw();
    case piece::notify_created: return notify_created();
    case piece::finish_creation: return finish_creation();
    case piece::creation_failed: return handle_creation_failure();
    case piece::leave_failed: return leave_failed();
    case piece::attach_source: return attempt->attach();
    case piece::step: return attempt->take();
    case piece::boundary: return process_boundary_or_fail();
    case piece::drain: return requests_.works().drain(deadline::never(*requests_.facts().time));
    case piece::request_save: return save_on_request();
    case piece::leave_group: return leave_group();
    case piece::end_hooks: return begin_closing(), end_hooks(closing_->failures);
    case piece::finish_close: return finish_close();
    case piece::shut_down: return shut_down();
  }
}

// ---- stops and failures

stop_reason session_engine::why() const {
  auto why = requests_.signals()->why();
  if (why.cause == stop_cause::none && !is_closed() && !threads_joined_ && threads_.should_stop()) { why = stop_of_threads(); }
  if (why.cause == stop_cause::none && source_ended_) { why = {stop_cause::end_of_data, "the source has no more batches"}; }
  if (why.cause == stop_cause::none && is_closed()) { why = {stop_cause::closed, "the session was closed"}; }
  return why;
}

void session_engine::check_threads() const {
  if (!recovery_.is_on() && !is_closed() && threads_.should_stop()) { threads_.raise_requested_exception(); }
}

void session_engine::throw_if_closed() const {
  if (is_closed() || requests_.signals()->stopped_by_hook()) { throw_after_end(is_closed()); }
}

bool session_engine::is_recovery_due() {
  if (!is_closed() && is_clear_to_run()) { return false; }
  end_body();
  throw_if_closed();
  return must_recover();
}

bool session_engine::is_recovery_due_for_step_fn() {
  if (is_closed()) { throw_after_end(true); }
  return must_recover();
}

/// Throws if the state is not one to keep. `verb` and `what` are those of "cannot make a checkpoint".
void session_engine::throw_if_bad_state(std::string_view verb, std::string_view what) const {
  if (const auto& why = requests_.rejected()) {
    throw failed_precondition_error("no checkpoint is written because the state was rejected: " + *why);
  }
  if (state_.phase() == session_phase::failed_midway) {
    throw failed_precondition_error(
        fmt::format("cannot {0} {1}: the last step failed midway; {0} it after a step that succeeds", verb, what));
  }
}

void session_engine::throw_unless_started() const {
  if (!state_.was_ready()) { throw failed_precondition_error("the session is not started; await async_start() first"); }
}

std::int64_t session_engine::global_step() const {
  if (!has_raw()) { throw_unless_started(); }
  return raw_step();
}

void session_engine::check_process() const {
  if (owner_.is_this_process()) { return; }
  throw failed_precondition_error(fmt::format(
      "cannot close this session: it is that of process {}, and this is a child of that process; call an exec function in a child, "
      "or end it with _exit",
      owner_.id()));
}

void session_engine::check_save() const {
  if (is_closed()) { throw failed_precondition_error("cannot make a checkpoint: the session is closed; make it before close()"); }
  if (requests_.signals()->stopped_by_hook()) {
    throw failed_precondition_error("cannot make a checkpoint: a hook has requested a stop; close() makes the last checkpoint");
  }
  throw_if_bad_state("make", "a checkpoint");
}

void session_engine::check_copy() const {
  if (is_closed()) {
    throw failed_precondition_error("cannot take a snapshot: the session is closed; take it before close(), or read the model itself");
  }
  throw_if_bad_state("take", "a snapshot");
}

void session_engine::on_failure(step_stage stage, std::exception_ptr failure, int attempt) noexcept {
  const log_scope named(options().name);
  requests_.drop_saves();
  settle_fence();
  // After a failure of the boundary, the caller does not get the step. A recovery repeats it, and then the caller does.
  if (stage == step_stage::boundary && !recovery_.is_overcome(failure)) { end_body(); }
  requests_.works().drop_held();
  set_failure(stage, failure);
  log_failed(stage, failure);
  if (options().group && !is_end_of_data()) {
    options().group->abandon(failure ? detail::text_of(failure) : "the session was destroyed by an exception");
  }
  const auto phase = state_.phase();
  if (phase == session_phase::ready || phase == session_phase::stepping || state_.has_failed()) {
    const bool is_midway = phase == session_phase::failed_midway || (stage != step_stage::source && stage != step_stage::boundary);
    state_.to(is_midway ? session_phase::failed_midway : session_phase::failed);
  }
  requests_.end_trace();
  requests_.signals()->note_failure(reason_of(failure, failure_kind_, is_of_data()));
  if (has_raw()) { notify_failure(failure, attempt); }  // otherwise no session was created
}

void session_engine::begin_hooks_or_log() {
  try {
    begin_hooks();
  } catch (...) {
    log_failed(step_stage::creation, std::current_exception());
    throw;
  }
}

/// Logs what has thrown `failure`, if it was a hook, the source or the step: the caller sees the exception, but not where it came from. The
/// end of the data is no failure. A failure that a recovery overcomes is no error.
void session_engine::log_failed(step_stage stage, const std::exception_ptr& failure) noexcept {
  const auto call = take_failed_call();
  const auto kind = detail::kind_of(failure);
  const bool is_of_source = stage == step_stage::source;
  if (call.hook.empty()) {
    if (!is_of_source && stage != step_stage::run) { return; }
    if (kind == errc::out_of_range || kind == errc::stop_iteration) { return; }
  }
  const auto level = detail::is_transient(kind) && recovery_.is_on() ? log_level::info : log_level::error;
  detail::log_failure("while logging a failure", [&] {
    const bool is_before = stage == step_stage::source || stage == step_stage::before_run || stage == step_stage::run;
    const auto place = has_raw() ? fmt::format("at step {}", raw_step() + (is_before ? 1 : 0)) : "at the start";
    const auto what = !call.hook.empty() ? fmt::format("hook {} {}", call.hook, call.point) : is_of_source ? "the source" : "the step";
    log(level, fmt::format("{} failed {}: {}", what, place, detail::text_of(failure)));
  });
}

void session_engine::set_failure(step_stage stage, std::exception_ptr failure) noexcept {
  failure_kind_ = detail::kind_of(failure);
  failure_ = std::move(failure);
  failed_stage_ = stage;
}

void session_engine::forget_failure() noexcept {
  failure_ = nullptr;
  if (state_.has_failed()) { state_.to(session_phase::ready); }
  requests_.drop_rollback();
  requests_.signals()->forget_failure();
}

bool session_engine::can_recover() {
  if (is_closed()) { return false; }
  if (!detail::is_transient(failure_kind_)) {
    auto of_thread = threads_.failure();
    if (!is_recoverable(of_thread)) { return false; }
    set_failure(step_stage::boundary, std::move(of_thread));
    if (!recovery_.is_on()) { std::rethrow_exception(failure_); }
  }
  return recovery_.is_on();
}

bool session_engine::ends_with_data() {
  if (should_stop()) { return true; }
  if (must_recover()) { return false; }
  note_end_of_source(true);
  return true;
}

session_metrics session_engine::metrics() const {
  session_metrics all;
  const auto last_done = last_step_done_.load(std::memory_order_relaxed);
  all.global_step = last_done >= 0 ? last_done : starts_at();
  all.recoveries = recovery_.total();
  all.creations = creations_;
  all.rollbacks = rollbacks_;
  all.preemption = requests_.limits().plan();
  requests_.works().report(all);
  all.snapshot_bytes += copy_->held_bytes() + initial_.held_bytes();
  for (const auto& runner : options().queue_runners) {
    if (const auto depth = runner->depth()) { all.queue_depths[runner->name()] = *depth; }
  }
  return all;
}

// ---- threads

void session_engine::start_runners() {
  if (options().queue_runners.empty()) { return; }
  start_queue_runners(this, threads_, options().queue_runners);
  // A loop that waits for a queue sees a stop only when the threads stop and close the queue.
  if (!on_own_stop_) { on_own_stop_.emplace(requests_.signals()->stop_token(), stop_for_threads{&threads_}); }
  if (requests_.signals()->stop_requested()) { threads_.request_stop(); }
}

void session_engine::join(const deadline& until) {
  if (threads_joined_) { return; }
  const std::stop_callback at_process_end(requests_.signals()->process_end_token(),
                                          [&] { threads_.limit_joins(requests_.limits().within_close(until).on(*threads_.time())); });
  threads_.join({.stop_grace_period = until.remaining(), .ignore_live_threads = true});
}

void session_engine::leave_threads() noexcept {
  threads_.request_stop();
  detail::log_failure("while shutting down after an error", [&] { join(grace()); });
  threads_joined_ = true;
}

/// Logs a failure that a recovery may overcome, and throws others. @see contract WRAP-1, REC-3
void session_engine::log_or_throw(function_ref<void()> action) const {
  try {
    action();
  } catch (...) {
    const auto failure = std::current_exception();
    if (!recovery_.is_overcome(failure)) { throw; }
    log_info("recoverable failure while shutting down the session: " + detail::text_of(failure));
  }
}

/// Returns the reason why threads ended the loop; the cause `none` if a recovery follows instead.
stop_reason session_engine::stop_of_threads() const {
  const auto failure = threads_.failure();
  if (!failure) { return {stop_cause::requested, "a thread of the session asked to stop"}; }
  return recovery_.is_overcome(failure) ? stop_reason{} : reason_of(failure, detail::kind_of(failure), false);
}

/// Returns true if the stop requested by a thread ends the loop. After a failure that a recovery may overcome, returns false and requests a
/// recovery before the next run.
bool session_engine::stopped_by_threads() const noexcept {
  if (threads_joined_) { return false; }
  if (!recovery_.is_overcome(threads_.failure())) { return true; }
  requests_.signals()->ask_to_recover();
  return false;
}

/// Returns true if a thread has failed with a failure that a recovery may overcome, and notifies hooks of it. Withdraws the request to
/// recover otherwise: it may have come from a thread of an earlier creation.
bool session_engine::failed_by_thread() noexcept {
  auto failure = threads_.failure();
  const bool is_due = recovery_.is_overcome(failure);
  if (is_due) {
    if (failure != failure_) { on_failure(step_stage::boundary, std::move(failure)); }  // hooks are notified once
  } else {
    requests_.signals()->recovered();
  }
  return is_due;
}

// ---- recovery

bool session_engine::must_recover() {
  return requests_.signals()->recovery_asked() && (state_.phase() == session_phase::lost || failed_by_thread());
}

void session_engine::leave_failed() {
  requests_.signals()->ask_to_recover();  // the next operation recovers if this one fails
  requests_.signals()->withdraw_stop_of_state();
  on_own_stop_.reset();  // refers to the stop that may have been withdrawn
  requests_.reject_state("recovery has not succeeded");
  skip_batch_ = false;
  join_and_drain();
  const bool waits_for_others = options().group != nullptr;  // the formation of a group is a wait already
  next_attempt_ = recovery_.next(failure_, last_step_done_.load(std::memory_order_relaxed), waits_for_others);
}

/// Requests a stop of the session if one of its threads has requested a stop of the threads. @see D-12
void session_engine::adopt_stop_of_threads() {
  if (requests_.signals()->stop_requested() || !threads_.should_stop() || threads_.failure() || threads_joined_) { return; }
  requests_.signals()->request_stop(stop_of_threads());
}

/// Joins the threads and drains the saves of the failed session. Failures that a recovery may overcome are logged. @see contract REC-2
void session_engine::join_and_drain() {
  adopt_stop_of_threads();
  threads_.request_stop();
  const auto until = grace();
  detail::error_collector failures;
  failures.attempt([&] { log_or_throw([&] { join(until); }); });
  failures.attempt([&] { log_or_throw([&] { requests_.works().drain(until); }); });
  if (!is_given_) { close_raw(); }  // a raw session given by the caller is also used afterwards
  threads_joined_ = true;
  if (!failures.get()) { return; }
  on_failure(step_stage::boundary, failures.get());
  failures.rethrow();
}

void session_engine::roll_back() {
  const auto& asked = *requests_.rollback();
  if (joins_others_) {
    throw failed_precondition_error("a worker cannot roll back (" + asked.why +
                                    "): the chief owns the model; give the hook that requests the rollback to the chief, see chief_only");
  }
  ++rollbacks_;
  throw aborted_error("rolling back: " + asked.why);
}

void session_engine::answer_rollback() {
  const auto& asked = requests_.rollback();
  if (!asked) { return; }
  skip_batch_ = asked->skip_batch;
  if (asked->answer) { asked->answer(); }
}

std::int64_t session_engine::step_reached() const noexcept {
  if (!has_raw()) { return 0; }  // the first creation has failed
  return joins_others_ ? std::max(raw_step(), last_step_done_.load(std::memory_order_relaxed)) : raw_step();
}

detail::loop_place session_engine::place_after_recovery(std::int64_t reached) const {
  const int attempt = recovery_.tries() + 1;
  if (starts_at() >= reached) { return {attempt}; }
  return {attempt, reached};
}

// ---- creation

void session_engine::find_checkpoint() {
  search_.look_ahead([this](const std::exception_ptr& failure) { return recovery_.is_overcome(failure); });
}

void session_engine::make_raw() {
  const bool is_first = creations_ == 0;
  requests_.begin_creation();
  threads_.clear_stop();
  threads_joined_ = false;
  if (is_first) { check_names(); }
  form_group();
  session_creation creation(
      requests_, positions_, *copy_, recovery_.is_on() ? &initial_ : nullptr, [this] { return hook_variables(); }, search_, is_first,
      is_group_worker());
  make(creation);
  search_.forget_ahead();
  joins_others_ = creation.is_joining();
  if (is_group_worker()) { receive_state(creation); }
  starts_at_.store(creation.starts_at().value_or(raw_step()), std::memory_order_relaxed);
  if (!joins_others_ && !creation.leaves_state()) { positions_.go_back(starts_at()); }
  if (options().group) {
    last_step_done_.store(starts_at(), std::memory_order_relaxed);  // for `running_step`
    if (!is_group_worker()) { send_state(); }
  }
  requests_.accept_state();
  note_created();
  start_runners();
}

void session_engine::note_created() {
  ++creations_;
  if (const auto& prefix = requests_.facts().restored_from) {
    log_info("restored " + *prefix + "; continuing after step " + std::to_string(raw_step()));
  }
}

void session_engine::finish_creation() {
  answer_rollback();  // after the hooks have begun: they may set values of the model
  if (is_boundary_due(may_trace_)) { process_boundary(); }
  requests_.drop_rollback();
  requests_.works().end_creation();
  requests_.signals()->recovered();
  if (!skip_batch_) { forget_failure(); }  // a batch that cannot be skipped makes the loop throw the failure after all
}

void session_engine::handle_creation_failure() {
  on_failure(step_stage::creation, std::exchange(creation_failure_, nullptr));
  if (can_recover()) { return; }
  requests_.reject_state("the session could not be created");
  leave_threads();
  std::rethrow_exception(failure_);
}

bool session_engine::was_interrupted(const std::exception_ptr& failure) const noexcept {
  return requests_.signals()->interrupted() && detail::kind_of(failure) == errc::cancelled;
}

/// Checks the variables before the restore. Afterwards they are not listed until `after_create_session` of all hooks was called, so that a
/// hook finds the restored values even if `variables()` of the model or of a hook prepares values for a save.
void session_engine::check_names() {
  if (!has_raw()) { return static_cast<void>(hook_variables()); }
  while_alone([this] { static_cast<void>(compose()); });
}

// ---- saves and snapshots on request

void session_engine::save_on_request() {
  has_left_out_save_ = false;
  if (!request_save()) { throw failed_precondition_error("no hook of this session saves checkpoints"); }
}

std::int64_t session_engine::step_saved_on_request() const {
  if (has_left_out_save_) {
    throw deadline_exceeded_error(
        fmt::format("the checkpoint of step {} was not made: it is not expected to be durable before the end of the process", raw_step()));
  }
  return raw_step();
}

snapshot session_engine::copy_state(std::optional<snapshot_pool::buffer> memory) {
  check_copy();
  std::optional<snapshot> taken;
  with_values([&] {
    const auto state = compose();
    if (!memory) { memory = snapshot_pool(0, 1).try_acquire(); }
    taken = snapshot::capture(std::move(*memory), state.variables, state.global_step);
  });
  return std::move(*taken);
}

// ---- the end

/// Returns how the session ends. `failure` is the failure of the close so far, or null.
run_ending session_engine::ending(const std::exception_ptr& failure) const {
  auto reason = why();
  if (reason.cause == stop_cause::none) { reason = {stop_cause::closed, "the session was closed"}; }
  auto ending_kind = detail::ending_after(reason.cause);
  if (const auto& cause = failure ? failure : failure_; cause && ending_kind != session_ending::failed) {
    ending_kind = session_ending::failed;
    reason = {stop_cause::error, detail::text_of(cause)};
  }
  return {ending_kind, std::move(reason), step_reached()};
}

void session_engine::begin_closing() {
  adopt_stop_of_threads();  // before `end` of the hooks, which may stop the threads
  end_body();
  leave_group();
  settle_fence();
  closing_.emplace(close_progress{.until = grace(), .failures = {}});
  requests_.limits().begin_close(closing_->until);
}

void session_engine::finish_close() {
  auto& [until, failures] = *closing_;
  // `end` of the hooks may have taken longer, and a signal may have come.
  until = until.remaining() == clock::duration::zero() ? grace() : requests_.limits().within_process(until);
  requests_.limits().begin_close(until);
  failures.attempt([&] {
    const detail::traced_part part(may_trace_ ? requests_.trace() : nullptr, "boundary");
    process_requests(until);
  });
  requests_.end_trace();
  if (threads_.should_stop()) { requests_.signals()->request_stop(stop_of_threads()); }
  threads_.request_stop();
  auto final_ending = ending(failures.get());
  failures.attempt([&] { requests_.works().drain_and_flush(until, std::move(final_ending)); });
  failures.attempt([&] { log_or_throw([&] { join(until); }); });
  close_raw();
  copy_->drop();
  if (!failures.get()) { return; }
  on_failure(step_stage::boundary, failures.get());
  failures.rethrow();
}

void session_engine::abandon(std::exception_ptr failure) noexcept {
  if (is_closed()) { return; }
  const log_scope named(options().name);
  state_.to(session_phase::abandoned);
  requests_.works().drop_held();  // the body of its step has not ended
  if (failure == nullptr ? failure_ == nullptr : failure != failure_) { on_failure(step_stage::boundary, failure); }
  requests_.drop_saves();
  threads_.request_stop();
  const auto until = grace();
  detail::log_failure("while shutting down after an error", [&] {
    auto final_ending = ending(failure ? failure : failure_);
    if (final_ending.how != session_ending::failed) {
      final_ending = {session_ending::failed, {stop_cause::error, "the session was destroyed by an exception"}, final_ending.global_step};
    }
    requests_.works().drain_and_flush(until, std::move(final_ending));
  });
  detail::log_failure("while shutting down after an error", [&] { join(until); });
  close_raw();
}

void session_engine::shut_down() noexcept {
  if (state_.phase() > session_phase::ending) { return; }
  const log_scope named(options().name);
  if (options().group) { options().group->abandon("the session was destroyed before it was closed"); }
  state_.to(session_phase::abandoned);
  requests_.end_trace();
  requests_.drop_saves();
  requests_.works().drop_held();
  threads_.request_stop();
  requests_.works().detach();
  detail::log_failure("while shutting down a session", [&] { join(grace()); });
  close_raw();
}

/// Closes the raw session. Failures are logged. @see contract WRAP-7
void session_engine::close_raw() noexcept {
  if (is_closed()) {
    end_signals_.reset();  // restores the program's handlers
    late_warning_.cancel();
    if (options().group) { options().group->close(); }
  }
  if (!has_raw()) { return; }
  settle_fence();
  detail::log_failure("while closing the raw session", [&] { close_made(); });
}

}  // namespace stepwell
