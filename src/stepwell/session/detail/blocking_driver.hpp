// SPDX-License-Identifier: Apache-2.0
//
// The blocking driver of the session protocol: calls, waits and loops on the caller's thread.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/session/detail/run_step.hpp"
#include "stepwell/session/detail/script_coroutine.hpp"
#include "stepwell/session/detail/session_engine.hpp"
#include "stepwell/session/training_session.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// Executes all actions of `steps`. @errors Exceptions of the script.
void drive(session_engine& engine, script steps);
/// Closes the session. Failures are logged.
void close_or_log(session_engine& engine) noexcept;

/// Completes a run that left the fast path. `outcome` is `done` if only the boundary is left: the requests of hooks. `taken` is then the
/// result of the run, otherwise null.
template<class Run, class Core>
[[gnu::noinline, gnu::cold]] typename Run::value_type finish_run(Core& core, typename Run::given_type arguments, step_outcome outcome,
                                                                 typename Run::value_type* taken) {
  Run run(std::move(arguments));
  run_attempt<Core, Run> attempt(core, run);
  attempt.outcome = outcome;
  if (taken != nullptr) { run.value.emplace(std::move(*taken)); }
  detail::drive(core, core.protocol().step(attempt));
  return std::move(*run.value);
}

/// Returns the session of the object with the gate `gate`. @errors `failed_precondition_error` if the object was moved from.
template<class Core>
[[nodiscard]] Core& core_of(session_gate& gate) {
  if (gate.is_moved_from()) [[unlikely]] { throw_moved_from(); }
  return static_cast<Core&>(gate);
}
/// Executes one call of `run`. A recovery repeats the run if the raw session accepts the arguments as lvalues. The check whether the session
/// is closed is also the check whether the object was moved from. @see contract REC-2
template<class Run, class Core>
[[gnu::always_inline]] inline auto run_call(session_gate& gate, typename Run::given_type arguments) -> typename Run::value_type {
  auto outcome = step_outcome::not_taken;
  if (gate.is_closed()) [[unlikely]] { detail::core_of<Core>(gate).throw_if_closed(); }
  auto& core = static_cast<Core&>(gate);
  if (core.is_clear_to_run() || !core.is_recovery_due()) [[likely]] {
    try {
      auto value = Run::take(core, 1, arguments);
      if (!core.boundary_due()) [[likely]] { return value; }
      outcome = step_outcome::done;
      auto taken = std::move(value);  // a copy of its own, so that `value` needs no address
      return detail::finish_run<Run>(core, std::move(arguments), outcome, &taken);
    } catch (...) {
      if (outcome == step_outcome::done) { throw; }  // a failure of the boundary
      outcome = detail::outcome_of_failed_run<Run::repeats>(core);
    }
  }
  return detail::finish_run<Run>(core, std::move(arguments), outcome, nullptr);
}

/// Executes a run inside a step function. Its failures are failures of the step function: a recovery repeats the whole function.
template<class Run, class Core>
auto run_within_step(Core& core, typename Run::given_type arguments) -> typename Run::value_type {
  core.end_body();
  auto value = Run::take(core, 1, arguments);
  if (core.boundary_due()) { detail::drive(core, core.protocol().boundary()); }
  return value;
}

// The types of hooks may be in an unnamed namespace of the program, and the coroutine frame of a loop depends on these types. If a virtual
// function (of any_session) creates the frame, g++ warns about this dependency.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

/// Does the next step of a loop, including its boundary. Returns false if the loop is over.
template<class Core, class Loop>
[[gnu::always_inline]] inline bool take_next(Core& core, Loop& loop) {
  auto outcome = step_outcome::not_taken;  // a local variable, because `loop` is in memory
  if (core.may_step_at_once()) [[likely]] { outcome = detail::take_step(core, loop.work()); }
  if (outcome != step_outcome::done || core.boundary_due()) [[unlikely]] {
    loop.outcome = outcome;
    detail::drive(core, core.protocol().step(loop));
    if (loop.outcome != step_outcome::done) { return false; }
  }
  if (loop.place.attempt != 1) [[unlikely]] { loop.place = {}; }
  return true;
}

/// Does the next step over `source`, which stays registered until the end of the data. Between two calls, `source` is not used. Returns an
/// empty value if the loop is over.
template<class Step, class Source, class Core>
std::optional<Step> next_over(Core& core, Source& source) {
  using registration = source_registration<Core, Source>;
  auto& holder =
      core.sources().template holder_of<registration>(source, [&] { return std::make_unique<registration>(core, core.sources(), source); });
  loop_attempt<Step, Core, registration&> loop(core, holder);
  const source_in_use<registration> now(holder);
  if (holder.is_attached()) {
    if (!detail::take_next(core, loop)) { return std::nullopt; }
  } else {
    detail::drive(core, core.protocol().step(loop));
    if (loop.outcome != step_outcome::done) { return std::nullopt; }
  }
  return std::move(loop.step);
}
/// Does the next step of a model that needs no data.
template<class Step, class Core>
std::optional<Step> next_over(Core& core) {
  no_data nothing;
  loop_attempt<Step, Core, loop_source<Core, no_data>> loop(core, core, nothing);
  loop.attach();
  if (!detail::take_next(core, loop)) { return std::nullopt; }
  return std::move(loop.step);
}

/// Does all steps of a loop over a source. Returns the last one without a copy.
template<class Step, class Result, class Source, class Core>
loop_result<Result> run_over(Core& core, Source& source) {
  core.sources().release(source);  // it may be that of earlier calls of `next`
  loop_attempt<Step, Core, loop_source<Core, Source>> loop(core, core, source);
  loop.attach();
  loop_result<Result> all;
  while (detail::take_next(core, loop)) { ++all.steps; }
  if (loop.step) { all.last.emplace(std::move(*loop.step)); }
  all.why = core.why();
  all.values = core.requests().works().history();
  return all;
}

/// Returns the steps of a loop over a source, as a range.
template<class Step, class Source, class Core>
generator<const Step&> steps_over(Core& core, Source source) {
  core.sources().release(source);
  loop_attempt<Step, Core, loop_source<Core, std::remove_reference_t<Source>>> loop(core, core, source);
  loop.attach();
  while (detail::take_next(core, loop)) { co_yield *loop.step; }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell::detail
