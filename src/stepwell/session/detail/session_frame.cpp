// SPDX-License-Identifier: Apache-2.0
#include "stepwell/session/detail/session_frame.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/hook/detail/run_trace.hpp"
#include "stepwell/hook/stateful_hook.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace stepwell {

session_frame::session_frame(session_settings settings, bool is_given, bool may_trace)
    : session_life(std::move(settings)), is_given_(is_given), may_trace_(may_trace), state_version_(state_version) {}

session_frame::~session_frame() = default;

// ---- failure and recovery

void session_frame::on_failure(step_stage stage, std::exception_ptr failure, int attempt) noexcept {
  control_.drop_requests();
  failure_ = failure;
  failed_stage_ = stage;
  is_half_stepped_ = is_half_stepped_ || (stage != step_stage::source && stage != step_stage::boundary);
  control_.end_trace();
  control_.signals()->note_failure(reason_of(failure, stage == step_stage::run || stage == step_stage::source));
  if (has_raw()) { tell_of_failure(failure, attempt); }  // else there never was a session to tell them of
}

clock::time_point session_frame::plan_recovery() {
  control_.signals()->ask_to_recover();  // by whoever comes next, unless we succeed
  control_.reject_state("recovery has not succeeded");
  skip_batch_ = false;
  try {
    leave();
    return recovery_.next(failure_, last_step_done_);
  } catch (...) {
    is_lost_ = true;
    throw;
  }
}

/// REC-2: the session that failed is left, whatever a recovery may overcome being logged.
void session_frame::leave() {
  if (threads_.should_stop() && !threads_.failure() && !is_left_) { control_.signals()->request_stop(stop_of_threads()); }  // D-12
  threads_.request_stop();
  const auto until = grace();
  detail::first_failure failures;
  failures.attempt([&] { overcome_or_throw([&] { join(until); }); });
  failures.attempt([&] { overcome_or_throw([&] { control_.drain(until); }); });
  if (!is_given_) { close_raw(); }  // one that is given serves the next session, too
  is_left_ = true;
  if (!failures.get()) { return; }
  on_failure(step_stage::boundary, failures.get());
  failures.rethrow();
}

/// Whether a thread did fail as `stopped_by_threads` found. The answer may be older than the present session.
bool session_frame::failed_by_thread() noexcept {
  auto failure = threads_.failure();
  const bool is_due = recovery_.is_overcome(failure);
  if (is_due) {
    on_failure(step_stage::boundary, std::move(failure));
  } else {
    control_.signals()->recovered();
  }
  return is_due;
}

int session_frame::recover() {
  do {
    const auto when = plan_recovery();
    control_.signals()->wait_for_stop(*control_.time(), when);
  } while (!create());
  return attempt();
}

// ---- creation

void session_frame::start() {
  if (!create()) { recover(); }
}

bool session_frame::create() {
  return creates([this] {
    make_raw();
    tell_of_creation();
    settle();
  });
}

bool session_frame::creates(function_ref<void()> part) {
  try {
    part();
    return true;
  } catch (...) {
    creation_failed();
    return false;
  }
}

/// Throws what is being handled on, unless it may pass. @pre Inside a catch.
void session_frame::creation_failed() {
  if (gave_up_waiting(std::current_exception())) { throw; }
  on_failure(step_stage::creation, std::current_exception());
  if (can_recover()) { return; }
  control_.reject_state("the session could not be made");
  is_lost_ = true;
  leave_threads();
  throw;
}

void session_frame::make_raw() {
  const bool is_first = creations_ == 0;
  control_.begin_creation();
  threads_.clear_stop();
  is_left_ = false;
  if (has_raw() && is_first) { check_names(); }
  session_creation creation(control_, positions_, initial_, [this] { return hook_variables(); }, search_, is_first);
  make(creation);
  search_.forget_ahead();
  check_names();
  joins_others_ = creation.is_joining();
  starts_at_ = creation.starts_at().value_or(raw_step());
  if (!joins_others_) { positions_.go_back(starts_at_); }
  control_.accept_state();
  note_created(is_first);
  start_runners();
}

void session_frame::note_created(bool is_first) {
  ++creations_;
  if (const auto& prefix = control_.restored_from()) {
    log_info("restored " + *prefix + "; going on after step " + std::to_string(raw_step()));
  }
  if (is_first) { return; }
  answer_rollback();
}

void session_frame::settle() {
  if (is_boundary_due(may_trace_)) { keep_boundary(); }
  control_.drop_rollback();
  control_.end_creation();
  is_half_stepped_ = false;
  is_lost_ = false;
  control_.signals()->recovered();
}

std::int64_t session_frame::step_reached() const noexcept { return joins_others_ ? std::max(raw_step(), last_step_done_) : raw_step(); }

void session_frame::check_names() {
  while_alone([this] { static_cast<void>(compose()); });
}

// ---- boundary

void session_frame::keep_boundary_or_fail() {
  try {
    keep_boundary();
  } catch (...) {
    on_failure(step_stage::boundary, std::current_exception());
    throw;
  }
}

void session_frame::keep_boundary() {
  if (may_trace_ && control_.trace()) { return keep_traced_boundary(); }
  act(deadline::never(*control_.time()));
}

/// With the boundary the trace ends.
void session_frame::keep_traced_boundary() {
  detail::first_failure failures;
  failures.attempt([&] {
    if (!control_.due()) { return; }
    const detail::traced_part part(control_.trace(), "boundary");
    act(deadline::never(*control_.time()));
  });
  control_.end_trace();  // nothing of what the works do now is traced
  failures.rethrow();
}

void session_frame::act(const deadline& until) {
  const auto with_state = [this](function_ref<void(const boundary_state&)> save) {
    while_alone([&] {
      auto state = compose();
      state.wait_for_records = control_.start_flush();
      save(state);
    });
  };
  control_.act(with_state, until);
  if (settings_.restores_what_it_saves && initial_.is_kept() && control_.signals()->has_checkpoint()) { initial_.forget(); }
}

boundary_state session_frame::compose() {
  boundary_state state{.global_step = raw_step(), .variables = raw_variables()};
  const auto append = [&](variable_list more) {
    for (auto& variable : more) { state.variables.push_back(std::move(variable)); }
  };
  append(hook_variables());
  append(positions_.variables());
  state.variables.emplace_back(std::string(version_name), state_version_);
  return state;
}

std::int64_t session_frame::save_now() {
  refuse_when_over();
  refuse_bad_state();
  control_.drain(deadline::never(*control_.time()));  // what is under way makes room
  if (!ask_to_save()) { throw failed_precondition_error("no hook of this session saves checkpoints"); }
  if (is_boundary_due(may_trace_)) { keep_boundary_or_fail(); }
  control_.drain(deadline::never(*control_.time()));
  return raw_step();
}

snapshot session_frame::copy_state(std::optional<snapshot_pool::buffer> memory) {
  refuse_copy();
  std::optional<snapshot> taken;
  while_alone([&] {
    const auto state = compose();
    if (!memory) { memory = snapshot_pool(snapshot_size(state.variables), 1).try_acquire(); }
    taken = snapshot::capture(std::move(*memory), state.variables, state.global_step);
  });
  return std::move(*taken);
}

// ---- the end

void session_frame::close() {
  if (!begin_to_close()) { return; }
  const auto until = grace();
  detail::first_failure failures;
  end_hooks(failures);
  finish_closing(until, failures);
}

void session_frame::close_or_log() noexcept {
  try {
    close();
  } catch (const std::exception& failure) {
    log_error(std::string("a session was left without close(), and closing it failed: ") + failure.what());
  } catch (...) { log_error("a session was left without close(), and closing it failed"); }
}

bool session_frame::begin_to_close() noexcept {
  if (is_closed_.exchange(true)) { return false; }
  is_closing_ = true;
  return true;
}

void session_frame::finish_closing(const deadline& until, detail::first_failure& failures) {
  is_closing_ = false;
  failures.attempt([&] {
    const detail::traced_part part(may_trace_ ? control_.trace() : nullptr, "boundary");
    act(until);
  });
  control_.end_trace();
  if (threads_.should_stop()) { control_.signals()->request_stop(stop_of_threads()); }
  threads_.request_stop();
  const auto how = failures.get() ? session_ending::failed : ending();
  failures.attempt([&] { control_.drain_and_flush(until, how); });
  failures.attempt([&] { overcome_or_throw([&] { join(until); }); });
  close_raw();
  if (failures.get()) {
    on_failure(step_stage::boundary, failures.get());
    failures.rethrow();
  }
}

void session_frame::abandon(std::exception_ptr failure) noexcept {
  if (is_closed_.exchange(true)) { return; }
  if (failure == nullptr ? failure_ == nullptr : failure != failure_) { on_failure(step_stage::boundary, failure); }
  control_.drop_requests();
  threads_.request_stop();
  const auto until = grace();
  detail::log_failure("while leaving after an error", [&] { control_.drain_and_flush(until, session_ending::failed); });
  detail::log_failure("while leaving after an error", [&] { join(until); });
  close_raw();
}

void session_frame::let_go() noexcept {
  if (is_closed_.exchange(true) && !std::exchange(is_closing_, false)) { return; }
  control_.end_trace();
  control_.drop_requests();
  threads_.request_stop();
  control_.detach();
  detail::log_failure("while letting a session go", [&] { join(grace()); });
  close_raw();
}

/// What that throws is logged, no more (contract WRAP-7).
void session_frame::close_raw() noexcept {
  if (is_closed_) { leave_process(); }
  if (!has_raw()) { return; }
  detail::log_failure("while closing the raw session", [&] { close_made(); });
}

}  // namespace stepwell
