// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hook/detail/deferred_requests.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/summary/writer.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stepwell {
namespace {

/// Returns what is measured so far, without the state to save and the time that is left.
preemption_facts facts_of(const session_metrics& known) {
  return {.under_way = known.under_way,
          .measured_bytes = static_cast<std::uint64_t>(known.bytes_saved),
          .measured_time = known.total_save_time};
}

}  // namespace

boundary_work::~boundary_work() = default;  // defined here, so that the virtual functions are compiled once

void throw_after_end(bool is_closed) {
  if (is_closed) { throw failed_precondition_error("run called on a closed session; create a new session"); }
  throw failed_precondition_error("Run called even after should_stop requested. Check should_stop() before each run");
}

void throw_rollback(const rollback_request& asked) { throw aborted_error("rolling back: " + asked.why); }

std::shared_ptr<summary::writer> deferred_requests::event_writer() const {
  if (event_directory_.empty()) { return nullptr; }
  return event_writer_ ? event_writer_() : summary::writer::shared(event_directory_);
}

void deferred_requests::add_work(std::shared_ptr<boundary_work> work) {
  const std::lock_guard lock(works_mutex_);
  std::erase(former_works_, work);
  if (std::ranges::find(works_, work) == works_.end()) { works_.push_back(std::move(work)); }
}

bool deferred_requests::claim(const void* thing) {
  if (std::ranges::find(claimed_, thing) != claimed_.end()) { return false; }
  claimed_.push_back(thing);
  return true;
}

void deferred_requests::request_save(boundary_work& work) {
  if (std::ranges::find(saves_, &work) == saves_.end()) { saves_.push_back(&work); }
}

void deferred_requests::act(function_ref<void(bool, function_ref<void(const boundary_state&)>)> with_state, const deadline& until) {
  detail::error_collector failures;
  if (signals_->is_notified()) {
    failures.attempt([&] { process_events(); });
  }
  for (const auto& work : works_) {
    if (work->is_save_due()) { request_save(*work); }
  }
  const bool process_ends = signals_->take_save_for_end();
  if (auto saves = std::exchange(saves_, {}); !saves.empty() || process_ends) {
    failures.attempt([&] {
      if (rejected_) { return log_warning(fmt::format("a due checkpoint is not written because the state was rejected: {}", *rejected_)); }
      with_state(process_ends, [&](const boundary_state& state) { save(state, std::move(saves), until); });
    });
  }
  failures.rethrow();
}

std::function<void()> deferred_requests::start_flush() const {
  std::vector<std::function<void()>> waits;
  for (const auto& work : works_) {
    if (auto wait = work->start_flush()) { waits.push_back(std::move(wait)); }
  }
  if (waits.empty()) { return nullptr; }
  return [waits = std::move(waits)] {
    for (const auto& wait : waits) { wait(); }
  };
}

void deferred_requests::process_events() {
  signals_->clear_notification();
  detail::error_collector failures;
  for (const auto& work : works_) {
    failures.attempt([&] { work->process_events(); });
  }
  for (auto& failure : signals_->take_failures()) { failures.add(std::move(failure)); }
  failures.rethrow();
}

deadline deferred_requests::deadline_after(clock::duration grace) const {
  const auto now = clock_->now();
  return grace < clock::time_point::max() - now ? deadline(*clock_, now + grace) : deadline::never(*clock_);
}

deadline deferred_requests::within_process(const deadline& until) const {
  const auto end = signals_->end_of_process();
  if (!end) { return until; }
  const auto left = deadline(*clock_, *end).remaining();
  const auto of_process = deadline_after(left > clock::duration::zero() ? left : *signals_->grace_of_process());
  return of_process.remaining() < until.remaining() ? of_process : until;
}

/// Returns the part of `grace` that is not reserved for the last save.
clock::duration deferred_requests::without_last_save(clock::duration grace) const {
  if (grace == clock::duration::max()) { return grace; }
  session_metrics known;
  report(known);
  auto facts = facts_of(known);
  facts.state_bytes = known.saves > 0 ? static_cast<std::uint64_t>(known.bytes_saved / known.saves) : 0;
  const auto plan = plan_preemption(facts);
  const auto expected = 2 * plan.for_all.value_or(std::chrono::duration<double>::zero());
  if (expected >= grace) { return clock::duration::zero(); }
  return grace - std::max(grace / 4, std::chrono::duration_cast<clock::duration>(expected));
}

void deferred_requests::begin_close(const deadline& until) { close_waits_ = deadline_after(without_last_save(until.remaining())); }

deadline deferred_requests::end_of_waits() const {
  auto end = deadline::never(*clock_);
  if (close_waits_) {
    end = *close_waits_;
  } else if (signals_->stop_requested()) {
    end = deadline_after(without_last_save(stop_grace_));
  }
  if (const auto of_process = signals_->end_of_process()) {
    const auto grace = *signals_->grace_of_process();
    const deadline waits(*clock_, *of_process - (grace - without_last_save(grace)));
    if (waits.remaining() < end.remaining()) { end = waits; }
  }
  return end;
}

void deferred_requests::save(const boundary_state& state, std::vector<boundary_work*> saves, const deadline& until) {
  if (state.is_last) {
    for (const auto& work : works_) {
      const bool is_asked = std::ranges::find(saves, work.get()) != saves.end();
      if (!is_asked && work->wants_last_save(state.global_step)) { saves.push_back(work.get()); }
    }
  }
  detail::error_collector failures;
  for (auto* work : saves) {
    if (!is_worth_saving(state)) { continue; }
    failures.attempt([&] { save(state, *work, until); });
  }
  failures.rethrow();
}

/// Saves the state. A wait for earlier saves has no end while the session goes on. A stop bounds it, also a stop during the wait.
void deferred_requests::save(const boundary_state& state, boundary_work& work, deadline until) {
  auto stop = signals_->stop_token();
  const auto limit = [&] {
    const auto stopped = deadline_after(stop_grace_);
    if (stopped.remaining() < until.remaining()) { until = stopped; }
    stop = {};
  };
  if (stop.stop_requested()) { limit(); }
  while (!work.try_save(state)) {
    work.wait_ready(within_process(until), stop);
    if (!stop.stop_requested()) { continue; }
    limit();
    if (!is_worth_saving(state)) { return; }
  }
}

/// Returns true if the state should be saved. Returns false if the process would probably end before the save is durable. Logs the
/// decision.
bool deferred_requests::is_worth_saving(const boundary_state& state) {
  const auto end = signals_->end_of_process();
  if (!end) { return true; }
  session_metrics known;
  report(known);
  auto facts = facts_of(known);
  facts.left = deadline(*clock_, *end).remaining();
  for (const auto& variable : state.variables) { facts.state_bytes += variable.size_bytes(); }
  const auto plan = plan_preemption(facts);
  {
    const std::lock_guard lock(works_mutex_);
    plan_ = plan;
  }
  const auto text = fmt::format("step {}: {}", state.global_step, plan.to_string());
  signals_->note_plan(text);
  const bool is_worth = plan.choice == preemption_choice::save;
  log(is_worth ? log_level::info : log_level::warning, "the process is about to end; " + text);
  return is_worth;
}

void deferred_requests::trace_into(std::shared_ptr<trace_recorder> recorder) noexcept {
  trace_begin_ = recorder ? recorder->position() : 0;
  trace_ = std::move(recorder);
}

void deferred_requests::end_trace() noexcept {
  if (std::exchange(trace_, nullptr) == nullptr) { return; }
  for (const auto& work : works_) {
    try {
      work->end_trace();
    } catch (...) { log_warning("at the end of a traced run: " + detail::text_of(std::current_exception())); }
  }
}

void deferred_requests::begin_creation() {
  auto all = all_works();
  {
    const std::lock_guard lock(works_mutex_);
    former_works_ = std::move(all);
    works_.clear();
  }
  claimed_.clear();
  restored_from_.reset();
  saves_.clear();
}

void deferred_requests::end_creation() noexcept {
  std::vector<std::shared_ptr<boundary_work>> former;  // destroyed without the lock
  const std::lock_guard lock(works_mutex_);
  former.swap(former_works_);
}

std::vector<std::shared_ptr<boundary_work>> deferred_requests::all_works() const {
  auto all = former_works_;
  all.insert(all.end(), works_.begin(), works_.end());
  return all;
}

void deferred_requests::drain(const deadline& until) {
  detail::error_collector failures;
  for (const auto& work : all_works()) {
    failures.attempt([&] { work->drain(until); });
  }
  failures.attempt([&] { process_events(); });
  failures.rethrow();
}

void deferred_requests::report(session_metrics& all) const {
  std::unique_lock lock(works_mutex_);
  all.preemption = plan_;
  const auto works = all_works();
  lock.unlock();
  for (const auto& work : works) { work->report(all); }
}

std::vector<history_value> deferred_requests::history() const {
  std::vector<history_value> all;
  for (const auto& work : works_) { work->add_history(all); }
  return all;
}

void deferred_requests::detach() noexcept {
  for (const auto& work : all_works()) {
    detail::log_failure("while shutting down a session", [&] { work->detach(); });
  }
  for (const auto& failure : signals_->take_failures()) { detail::log_exception("while shutting down a session", failure); }
}

void deferred_requests::hold_until_released(const std::shared_ptr<void>& hold) const {
  for (const auto& work : all_works()) { work->hold_until_released(hold); }
}

void deferred_requests::drain_and_flush(const deadline& until, run_ending ending) {
  detail::error_collector failures;
  failures.attempt([&] { drain(until); });
  if (failures.get()) { ending = {session_ending::failed, {stop_cause::error, detail::text_of(failures.get())}, ending.global_step}; }
  for (const auto& work : all_works()) {
    failures.attempt([&] { work->write_ending(ending); });
  }
  for (const auto& work : all_works()) {
    failures.attempt([&] { work->flush(until); });
  }
  for (auto& failure : signals_->take_failures()) { failures.add(std::move(failure)); }
  failures.rethrow();
}

}  // namespace stepwell
