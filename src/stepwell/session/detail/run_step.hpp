// SPDX-License-Identifier: Apache-2.0
//
// The fast path of every session: one run with its hooks, and one step of a loop. Inlined, without allocation or indirect call.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/detail/source_cursor.hpp"
#include "stepwell/session/detail/step_attempt.hpp"
#include "stepwell/session/step_result.hpp"

#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// Returns the result of `raw.enter(order)`, which has to be held while the raw session runs and its values are read. Returns 0 if there is
/// no `enter`.
template<class Raw, class Order>
[[nodiscard, gnu::always_inline]] inline auto enter(Raw& raw, const Order& order) {
  if constexpr (requires { raw.enter(order); }) {
    return raw.enter(order);
  } else {
    return 0;
  }
}
/// Passes the feeds of `order` to the raw session, for the duration of the run. Does nothing for a raw session whose `run` reads the feeds.
template<class Raw, class Order>
auto feed_into(Raw& raw, const Order& order) {
  if constexpr (!Order::has_feeds) {
    return 0;
  } else if constexpr (requires { raw.feed(order); }) {
    return raw.feed(order);
  } else {
    static_assert(reads_feeds<Raw>,
                  "stepwell: this raw session cannot be fed: give it feed(order), or, if its run reads order.feeds(), "
                  "static constexpr bool reads_feeds = true");
    return 0;
  }
}
/// Returns the outcome of a run, or copies of the values that its caller fetched.
template<class Raw, class Outcome, class Caller>
[[gnu::always_inline]] inline auto extract_result(const Caller& caller, const Raw& raw, Outcome& outcome) {
  using pack_type = typename Caller::pack_type;
  if constexpr (std::is_void_v<pack_type>) {
    return Outcome(std::move(outcome));
  } else {
    const run_values<Raw, Outcome, pack_type> values(raw, outcome, caller.pack());
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<std::decay_t<decltype(values.template get<I>())>...>(values.template get<I>()...);
    }(std::make_index_sequence<values.size()>{});
  }
}
template<class Raw, class Caller>
using extracted =
    decltype(extract_result(std::declval<const Caller&>(), std::declval<const Raw&>(), std::declval<typename Raw::outcome_type&>()));

/// Converts the result of `run_step` to the result for the caller: the fetched values as a tuple if there are any, otherwise the result of
/// the step.
template<class Raw, class Caller, class Extracted>
[[gnu::always_inline]] inline auto result_for_caller(Extracted&& value) {
  if constexpr (std::is_void_v<typename Caller::pack_type>) {
    return typename Raw::result_type(std::forward<Extracted>(value).result);
  } else {
    return std::remove_cvref_t<Extracted>(std::forward<Extracted>(value));
  }
}

/// Returns true if `Raw` takes `Args` as lvalues. If it can only consume them, a run cannot be repeated.
template<class Raw, class... Args>
constexpr bool is_repeatable() {
  if constexpr (requires { Raw::template takes<Args&...>; }) {
    return Raw::template takes<Args&...>;
  } else {
    return true;
  }
}

/// Executes one run: `before_run` of the hooks, the raw session, `after_run` of the hooks. The caller processes the boundary, after it has
/// advanced the source.
/// @errors Exceptions of hooks and of the raw session. The hooks have been notified of them.
template<class Core, class Caller, class... Args>
[[gnu::always_inline]] inline auto run_step(Core& core, int attempt, const Caller& caller, Args&&... args) {
  auto& raw = core.raw();
  auto stage = step_stage::before_run;
  try {
    constexpr bool traced = Core::may_trace() || Caller::has_options;
    run_context<std::remove_cvref_t<decltype(raw)>> context(raw, core.control(), attempt);
    trace_of_run<traced> trace(core.control());
    trace.before_hooks(caller);
    const auto order = core.template prepare<traced>(context, caller);
    trace.before_run(order);
    stage = step_stage::run;
    [[maybe_unused]] const auto scope = detail::enter(raw, order);  // held until hooks have read the values, which are references
    [[maybe_unused]] const auto fed = detail::feed_into(raw, order);
    auto outcome = [&] {
      [[maybe_unused]] const run_part<traced> part(context.trace(), "run");
      return raw.run(order, std::forward<Args>(args)...);
    }();
    stage = step_stage::after_run;
    context.come_to(outcome.step_after);
    trace.after_run(order);
    core.template finish<traced>(context, order, outcome);
    trace.after_hooks(order);
    return detail::extract_result(caller, raw, outcome);  // while `scope` and `fed` are alive
  } catch (...) {
    core.on_failure(stage, std::current_exception(), attempt);
    throw;
  }
}

/// Calls `action` as part of `stage`. @errors Exceptions of `action`. The hooks have been notified of them.
template<class Core, class Action>
[[gnu::always_inline]] inline auto guarded(Core& core, step_stage stage, Action&& action) {
  try {
    return action();
  } catch (...) {
    core.on_failure(stage, std::current_exception());
    throw;
  }
}

/// Calls `step` and classifies its failure.
/// @errors Failures that are not the end of the data and cannot be recovered from.
template<class Core, class Step>
[[gnu::always_inline]] inline step_outcome classify(Core& core, Step&& step) {
  try {
    return step();
  } catch (const out_of_range_error&) {
    if (core.can_recover()) { return step_outcome::to_recover; }  // a failure of a thread is the cause
    if (!core.is_of_data()) { throw; }
    core.forget_failure();
  } catch (...) {
    if (!core.can_recover()) { throw; }
    return step_outcome::to_recover;
  }
  return step_outcome::out_of_data;
}
/// Like `classify`, for a run, which has no end of data. If the run is not repeated, throws its failure, or the failure of a thread that
/// caused it.
/// @see contract WRAP-5
template<bool Repeats, class Core, class Step>
[[gnu::always_inline]] inline step_outcome classify_run(Core& core, Step&& step) {
  try {
    return step();
  } catch (...) {
    if (!core.can_recover()) { throw; }
    if constexpr (!Repeats) { std::rethrow_exception(core.failure()); }
  }
  return step_outcome::to_recover;
}

/// Returns the batch for the next step of a loop; null at the end of the data.
template<class Core, class Cursor>
[[gnu::always_inline]] inline auto batch_of_step(Core& core, Cursor& cursor) {
  if (cursor.is_ahead()) [[unlikely]] {
    detail::guarded(core, step_stage::boundary, [&] { cursor.rewind(core.starts_at(), core.settings().on_unseekable); });
  }
  return detail::guarded(core, step_stage::source, [&] { return cursor.peek(); });
}
/// Stores a completed step of a loop, and advances the source.
template<class Step, class Core, class Cursor, class Outcome>
[[gnu::always_inline]] inline void keep_step(Core& core, Cursor& cursor, const loop_place& place, std::optional<Step>& step,
                                             Outcome& outcome) {
  step.emplace(std::move(outcome.result), outcome.step_after, place.attempt, place.rolled_back_from);  // in place, without a copy
  detail::guarded(core, step_stage::boundary, [&] { cursor.advance(step->global_step); });
}

/// Does one step of a loop with the next batch, without its boundary. Stores the step in `step` if it is done.
template<class Step, class Core, class Cursor>
[[gnu::always_inline]] inline step_outcome take_step(Core& core, Cursor& cursor, const loop_place& place, std::optional<Step>& step) {
  const auto* batch = detail::batch_of_step(core, cursor);
  if (batch == nullptr) { return step_outcome::out_of_data; }
  auto outcome = [&]() __attribute__((always_inline)) {
    if constexpr (std::is_same_v<decltype(batch), const no_data::batch*>) {
      return detail::run_step(core, place.attempt, caller_request<all_hooks>{});
    } else {
      return detail::run_step(core, place.attempt, caller_request<all_hooks>{}, *batch);
    }
  }();
  detail::keep_step(core, cursor, place, step, outcome);
  return step_outcome::done;
}

}  // namespace stepwell::detail
