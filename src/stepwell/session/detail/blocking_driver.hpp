// SPDX-License-Identifier: Apache-2.0
//
// The blocking driver of the session protocol: calls, waits and loops on the caller's thread.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/hook/run_request.hpp"
#include "stepwell/session/detail/run_step.hpp"
#include "stepwell/session/detail/script.hpp"
#include "stepwell/session/detail/session_engine.hpp"

#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// Executes all actions of `steps`. @errors Exceptions of the script.
void drive(session_engine& engine, script steps);
/// Closes the session. Failures are logged.
void close_or_log(session_engine& engine) noexcept;

/// A run with `args`, attempted once or several times.
template<bool Repeats, class Core, class Caller, class... Args>
class run_attempt final : public step_attempt {
  using value_type = extracted<typename Core::raw_type, Caller>;

public:
  run_attempt(Core& core, const Caller& caller, Args&... args) noexcept
      : step_attempt(false, Repeats), core_(core), caller_(caller), args_(args...) {}

  void take() override {
    outcome = detail::classify_run<Repeats>(core_, [this] {
      value.reset();
      std::apply([this](Args&... args) { value.emplace(detail::run_step(core_, place.attempt, caller_, given<Args>(args)...)); }, args_);
      return step_outcome::done;
    });
  }

  std::optional<value_type> value;

private:
  /// Returns an argument for the run: as an lvalue if the run may be repeated, otherwise as an rvalue, which the run can consume.
  template<class Arg>
  static decltype(auto) given(Arg& arg) noexcept {
    if constexpr (Repeats) {
      return (arg);
    } else {
      return static_cast<Arg&&>(arg);
    }
  }

  Core& core_;
  const Caller& caller_;
  std::tuple<Args&...> args_;
};

/// Completes a run that the fast path did not complete. `taken` is its value if only the boundary is left.
template<bool Repeats, class Core, class Caller, class Value, class... Args>
[[gnu::noinline, gnu::cold]] Value finish_run(Core& core, const Caller& caller, step_outcome outcome, std::optional<Value>& taken,
                                              Args&... args) {
  run_attempt<Repeats, Core, Caller, Args...> attempt(core, caller, args...);
  attempt.outcome = outcome;
  if (taken) { attempt.value.emplace(std::move(*taken)); }
  detail::drive(core, core.protocol().step(attempt));
  return std::move(*attempt.value);
}

/// Executes one call of `run`. After a recovery it is repeated with the same arguments if they can be passed again. @see contract REC-2
template<class Core, class Caller, class... Args>
[[gnu::always_inline]] inline auto run_call(Core& core, const Caller& caller, Args&&... args) {
  constexpr bool repeats = is_repeatable<typename Core::raw_type, std::remove_reference_t<Args>...>();
  using value_type = extracted<typename Core::raw_type, Caller>;
  auto outcome = step_outcome::not_taken;
  std::optional<value_type> taken;
  if (!core.recovery_due()) [[likely]] {
    try {
      auto value = [&]() __attribute__((always_inline)) {
        if constexpr (repeats) {
          return detail::run_step(core, 1, caller, args...);
        } else {
          return detail::run_step(core, 1, caller, std::forward<Args>(args)...);
        }
      }();
      if (!core.boundary_due()) [[likely]] { return value; }
      taken.emplace(std::move(value));
      outcome = step_outcome::done;
    } catch (...) {
      if (!core.can_recover()) { throw; }
      if constexpr (!repeats) { std::rethrow_exception(core.failure()); }
      outcome = step_outcome::to_recover;
    }
  }
  return detail::finish_run<repeats>(core, caller, outcome, taken, args...);
}

/// Executes a run inside a step function. Its failures are failures of the step function: a recovery repeats the whole function.
template<class Core, class Caller, class... Args>
auto run_within_step(Core& core, const Caller& caller, Args&&... args) {
  auto value = detail::run_step(core, 1, caller, std::forward<Args>(args)...);
  if (core.boundary_due()) { detail::drive(core, core.protocol().boundary()); }
  return value;
}

/// A call of a step function, attempted once or several times. @see contract STEP-6
template<class Core, class Call>
class step_fn_attempt final : public step_attempt {
public:
  step_fn_attempt(Core& core, Call& call) noexcept : step_attempt(false, true), core_(core), call_(call) {}

  void take() override {
    try {
      call_();
      outcome = step_outcome::done;
    } catch (const stop_iteration&) { throw; } catch (...) {
      if (core_.failure() != std::current_exception()) { core_.on_failure(step_stage::run, std::current_exception()); }
      if (!core_.can_recover()) { throw; }
      outcome = step_outcome::to_recover;
    }
  }

private:
  Core& core_;
  Call& call_;
};

/// The steps of a loop over a source. `Source` is a reference type if the caller owns the source.
template<class Step, class Core, class Source>
class loop_attempt final : public step_attempt {
  using source_type = std::remove_reference_t<Source>;

public:
  loop_attempt(Core& core, Source source) : step_attempt(true, true), core_(core), source_(static_cast<Source&&>(source)) {}

  void attach() override {
    if (cursor_) { return; }
    detail::guarded(core_, step_stage::source, [this] { cursor_.emplace(core_.positions(), source_, core_.raw().global_step()); });
    core_.note_end_of_source(false);
  }
  void take() override { outcome = take_inlined(); }
  [[gnu::always_inline]] step_outcome take_inlined() {
    return detail::classify(core_, [this] { return detail::take_step(core_, *cursor_, place, step); });
  }
  bool skip_batch() override { return cursor_->skip_present(); }
  void detach() noexcept override { cursor_.reset(); }

  std::optional<Step> step;

private:
  Core& core_;
  Source source_;
  std::optional<source_cursor<source_type>> cursor_;
};

// The frame of a loop refers to the hooks, which may be in an unnamed namespace of the program. g++ warns about that if the loop is
// made by a virtual function (any_session).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

/// Returns the steps of a loop over a source, as a range.
template<class Step, class Source, class Core>
generator<const Step&> steps_over(Core& core, Source source) {
  loop_attempt<Step, Core, Source> loop(core, static_cast<Source&&>(source));
  loop.attach();
  for (;;) {
    loop.outcome = step_outcome::not_taken;
    if (!core.should_stop() && !core.recovery_due()) [[likely]] { loop.outcome = loop.take_inlined(); }
    if (loop.outcome != step_outcome::done || core.boundary_due()) [[unlikely]] { detail::drive(core, core.protocol().step(loop)); }
    if (loop.outcome != step_outcome::done) [[unlikely]] { break; }
    if (loop.place.attempt != 1) [[unlikely]] { loop.place = {}; }
    co_yield *loop.step;
  }
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell::detail
