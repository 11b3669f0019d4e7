// SPDX-License-Identifier: Apache-2.0
//
// The boundary of a session, in the order of its calls: the requests of hooks are processed, the state is composed, and works save it.
#include "stepwell/base/detail/error_collector.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/protocol/detail/run_trace.hpp"
#include "stepwell/protocol/state_names.hpp"
#include "stepwell/session/detail/session_engine.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string>
#include <utility>

namespace stepwell {

void session_engine::process_boundary_or_fail() {
  try {
    process_boundary();
  } catch (...) {
    on_failure(step_stage::boundary, std::current_exception());
    throw;
  }
}

/// Processes the requests of hooks, and ends the trace, if there is one.
void session_engine::process_boundary() {
  const auto until = deadline::never(*requests_.facts().time);
  if (!may_trace_ || !requests_.trace()) { return process_requests(until); }
  detail::error_collector failures;
  failures.attempt([&] {
    if (!requests_.due()) { return; }
    const detail::traced_part part(requests_.trace(), "boundary");
    process_requests(until);
  });
  requests_.end_trace();  // later work is not traced
  failures.rethrow();
}

/// Processes events of background work, then saves the state if a save is due. A failure of background work does not prevent the save.
void session_engine::process_requests(const deadline& until) {
  auto& signals = *requests_.signals();
  if (setup_.restores_what_it_saves && signals.has_checkpoint()) { copy_->drop(); }
  detail::error_collector failures;
  if (signals.is_notified()) {
    failures.attempt([&] { requests_.works().process_events(); });
    if (signals.take_checkpoint_request() && !request_save()) {
      log_warning("a checkpoint was requested, but no hook of this session saves checkpoints");
    }
  }
  auto saves = requests_.take_saves();
  const bool process_ends = signals.take_save_for_end();
  if (!saves.empty() || process_ends) {
    failures.attempt([&] { save_state(std::move(saves), process_ends, until); });
  }
  failures.rethrow();
}

/// Saves the current state with all works in `saves`. `process_ends`: with all works that want to save before the process ends, too.
void session_engine::save_state(std::vector<boundary_work*> saves, bool process_ends, const deadline& until) {
  if (const auto& why = requests_.rejected()) {
    return log_warning(fmt::format("a due checkpoint is not written because the state was rejected: {}", *why));
  }
  with_values([&] {
    const auto state = compose_for_save(process_ends);
    for (const auto& work : requests_.works().registered()) {
      const bool is_asked = std::ranges::find(saves, work.get()) != saves.end();
      if (process_ends && !is_asked && work->wants_last_save(state.global_step)) { saves.push_back(work.get()); }
    }
    detail::error_collector failures;
    for (auto* work : saves) {
      failures.attempt([&] {
        if (!requests_.limits().is_worth_saving(state) || !save_with(*work, state, until)) { has_left_out_save_ = true; }
      });
    }
    failures.rethrow();
  });
}

/// Saves the state. A wait for earlier saves has no end while the session goes on. A stop bounds it, also a stop during the wait. Returns
/// false if the save is left out, because the process is about to end.
bool session_engine::save_with(boundary_work& work, const boundary_state& state, deadline until) {
  auto& limits = requests_.limits();
  auto stop = requests_.signals()->stop_token();
  const auto limit = [&] {
    until = detail::earlier_of(limits.after_stop(), until);
    stop = {};
  };
  if (stop.stop_requested()) { limit(); }
  while (!work.try_save(state)) {
    work.wait_ready(limits.within_process(until), stop);
    if (!stop.stop_requested()) { continue; }
    limit();
    if (!limits.is_worth_saving(state)) { return false; }
  }
  return true;
}

/// Returns the current state, with all that a save of this boundary needs.
boundary_state session_engine::compose_for_save(bool process_ends) {
  auto state = compose();
  warn_of_no_variables(state.variables);
  state.is_last = process_ends;
  state.precedes_body = state_.phase() == detail::session_phase::at_boundary && !process_ends && !state.has_stop;
  const bool keeps_copy = setup_.restores_what_it_saves && detail::keeps_initial_state(options());
  if (keeps_copy && !requests_.signals()->has_checkpoint()) { state.copy = copy_; }
  state.wait_for_records = requests_.works().start_flush();
  if (state_.phase() == detail::session_phase::at_boundary && !process_ends) { state.fence = prepared_fence(); }
  return state;
}

/// Warns once if a save contains nothing that the model learns.
void session_engine::warn_of_no_variables(const variable_list& saved) {
  if (std::exchange(has_seen_variables_, true)) { return; }
  const auto is_of_model = [](const variable_ref& one) {
    return one.name() != global_step_name && !one.name().starts_with(reserved_prefix);
  };
  if (std::ranges::any_of(saved, is_of_model)) { return; }
  log_warning(
      "the model has no variables: checkpoints contain the number of steps, but nothing that the model learns; return its members in "
      "variables()");
}

/// The library's own variables are early: hooks and sources change them at any time in a step.
boundary_state session_engine::compose() {
  boundary_state state{.global_step = raw_step(), .variables = raw_variables()};
  const auto append = [&](variable_list more) {
    for (auto& variable : more) { state.variables.push_back(std::move(variable).early()); }
  };
  append(hook_variables());
  append(positions_.variables());
  state.variables.emplace_back(std::string(version_name), state_version_);
  if (auto stop = requests_.signals()->stop_of_step()) {
    state.has_stop = true;
    stop_cause_ = to_string(stop->cause);
    stop_text_ = std::move(stop->text);
    state.variables.emplace_back(std::string(stop_cause_name), stop_cause_);
    state.variables.emplace_back(std::string(stop_text_name), stop_text_);
  }
  return state;
}

update_fence* session_engine::prepared_fence() noexcept {
  auto* active_fence = fence();
  if (active_fence == nullptr) { return nullptr; }
  constexpr unsigned period = 16;  // see `training_options::check_update_fence`
  const bool is_turn = fenced_saves_++ % period == 0;
  active_fence->set_checks(options().check_update_fence.value_or(is_turn));
  return active_fence;
}

/// Ends the copy of a snapshot, before code other than a step may change the variables.
void session_engine::settle_fence() noexcept {
  if (auto* active_fence = has_raw() ? fence() : nullptr) { active_fence->settle(); }
}

}  // namespace stepwell
