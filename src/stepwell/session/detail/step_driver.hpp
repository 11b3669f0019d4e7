// SPDX-License-Identifier: Apache-2.0
//
// The blocking driver: a step, a recovery, and a loop of steps, made of the core's pieces. The awaited driver is its twin.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/raw_session.hpp"
#include "stepwell/session/detail/session_core.hpp"
#include "stepwell/session/detail/source_lease.hpp"
#include "stepwell/session/step_result.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {
/// What a raw session needs held while it runs and its values are looked at: what its `enter(order)` returns.
template<class Raw, class Order>
[[nodiscard, gnu::always_inline]] inline auto enter(Raw& raw, const Order& order) {
  if constexpr (requires { raw.enter(order); }) {
    return raw.enter(order);
  } else {
    return 0;
  }
}
/// Delivers the feeds of `order` to the raw session, until the end of the run. A raw session whose `run` reads them needs nothing here.
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
/// What the caller of a run gets: the outcome, or copies of the values he asked for.
template<class Raw, class Outcome, class Caller>
[[gnu::always_inline]] inline auto taken_by(const Caller& caller, const Raw& raw, Outcome& outcome) {
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
using taken_of = decltype(taken_by(std::declval<const Caller&>(), std::declval<const Raw&>(), std::declval<typename Raw::outcome_type&>()));
}  // namespace detail

/// One run: hooks before, the raw session, hooks after; see `taken_by`. The boundary is the caller's, once the source has
/// advanced.
template<class Core, class Caller, class... Args>
[[gnu::always_inline]] inline auto run_step(Core& core, int attempt, const Caller& caller, Args&&... args) {
  auto& raw = core.raw();
  auto stage = step_stage::before_run;
  try {
    constexpr bool traced = Core::may_trace() || Caller::has_options;
    run_context<std::remove_cvref_t<decltype(raw)>> context(raw, core.control(), attempt);
    detail::trace_of_run<traced> trace(core.control());
    trace.before_hooks(caller);
    const auto order = core.template prepare<traced>(context, caller);
    trace.before_run(order);
    stage = step_stage::run;
    [[maybe_unused]] const auto scope = detail::enter(raw, order);  // values are references: until hooks have seen them
    [[maybe_unused]] const auto fed = detail::feed_into(raw, order);
    auto outcome = [&] {
      [[maybe_unused]] const detail::run_part<traced> part(context.trace(), "run");
      return raw.run(order, std::forward<Args>(args)...);
    }();
    stage = step_stage::after_run;
    context.come_to(outcome.step_after);
    trace.after_run(order);
    core.template finish<traced>(context, order, outcome);
    trace.after_hooks(order);
    return detail::taken_by(caller, raw, outcome);  // as long as the model is ours, and holds what was fed
  } catch (...) {
    core.on_failure(stage, std::current_exception(), attempt);
    throw;
  }
}

namespace detail {

/// Whether `Raw` takes `Args` as the caller gave them, or only to be used up: then a run cannot be repeated.
template<class Raw, class... Args>
constexpr bool is_repeatable() {
  if constexpr (requires { Raw::template takes<Args&...>; }) {
    return Raw::template takes<Args&...>;
  } else {
    return true;
  }
}

/// The failure of a run that is not repeated, in a catch: the one at its root (contract WRAP-5).
template<class Core>
[[noreturn, gnu::cold]] void throw_root(Core& core) {
  if (core.can_recover()) { std::rethrow_exception(core.failure()); }
  throw;
}

/// What the caller of a run gets of what `run_step` gave: the values fetched, as a tuple, else the result.
template<class Raw, class Caller, class Taken>
[[gnu::always_inline]] inline auto result_for_caller(Taken&& taken) {
  if constexpr (std::is_void_v<typename Caller::pack_type>) {
    return typename Raw::result_type(std::forward<Taken>(taken).result);
  } else {
    return std::remove_cvref_t<Taken>(std::forward<Taken>(taken));
  }
}

template<class Core, class Caller, class... Args>
[[gnu::noinline, gnu::cold]] auto run_again(Core& core, const Caller& caller, Args&... args) {
  for (;;) {
    const auto failure = core.failure();
    const int attempt = core.recover();
    if (core.take_skip()) { std::rethrow_exception(failure); }  // of this call there is nothing left to run
    try {
      auto taken = stepwell::run_step(core, attempt, caller, args...);
      core.boundary_or_fail();
      return taken;
    } catch (...) {
      if (!core.can_recover()) { throw; }
    }
  }
}

}  // namespace detail

/// One whole call: repeated with the same arguments after a recovery (contract REC-2), if `Recover` says so.
template<bool Recover, class Core, class Caller, class... Args>
[[gnu::always_inline]] inline auto run_call(Core& core, const Caller& caller, Args&&... args) {
  using raw_type = std::remove_cvref_t<decltype(core.raw())>;
  if constexpr (Recover) {
    if (core.recovery_due()) [[unlikely]] { core.recover(); }
  }
  if constexpr (Recover && detail::is_repeatable<raw_type, std::remove_reference_t<Args>...>()) {
    try {
      auto taken = stepwell::run_step(core, 1, caller, args...);
      core.boundary_or_fail();
      return taken;
    } catch (...) {
      if (!core.can_recover()) { throw; }
    }
    return detail::run_again(core, caller, args...);
  } else {
    try {
      auto taken = stepwell::run_step(core, 1, caller, std::forward<Args>(args)...);
      core.boundary_or_fail();
      return taken;
    } catch (...) {
      if constexpr (Recover) { detail::throw_root(core); }
      throw;
    }
  }
}

namespace detail {

/// Does `action` as part of `stage`.
template<class Core, class Action>
[[gnu::always_inline]] inline auto guarded(Core& core, step_stage stage, Action&& action) {
  try {
    return action();
  } catch (...) {
    core.on_failure(stage, std::current_exception());
    throw;
  }
}

/// How a step of a loop went.
enum class step_end { done, out_of_data, to_recover };

/// Does `step`; sorts out how it ended.
/// @errors What is neither the end of the data nor to be recovered from.
template<class Core, class Step>
[[gnu::always_inline]] inline step_end sorted_out(Core& core, Step&& step) {
  try {
    return step();
  } catch (const out_of_range_error&) {
    if (core.can_recover()) { return step_end::to_recover; }  // that of a thread is at its root
    if (!core.is_of_data()) { throw; }
    core.forget_failure();
  } catch (...) {
    if (!core.can_recover()) { throw; }
    return step_end::to_recover;
  }
  return step_end::out_of_data;
}

/// Whether the end of the data is the end of the loop; a thread that feeds it may have failed.
template<class Core>
bool is_over(Core& core) {
  if (core.should_stop()) { return true; }
  if (core.must_recover()) { return false; }
  core.note_end_of_source(true);
  return true;
}

/// Where a loop stands: which try comes next, and from where it was thrown back.
struct loop_place {
  int attempt = 1;
  std::optional<std::int64_t> rolled_back_from = std::nullopt;
};

/// Where it stands after a recovery of a session that had come to step `reached`.
template<class Core>
loop_place place_after_recovery(const Core& core, std::int64_t reached) {
  if (core.starts_at() >= reached) { return {core.attempt()}; }
  return {core.attempt(), reached};
}
/// Recovers inside a loop; where it stands then.
template<class Core>
[[gnu::noinline, gnu::cold]] loop_place recover_loop(Core& core) {
  const auto reached = core.step_reached();
  core.recover();
  return detail::place_after_recovery(core, reached);
}

/// The batch of the coming step of a loop; null at the end of the data.
template<class Core, class Lease>
[[gnu::always_inline]] inline auto batch_of_step(Core& core, Lease& lease) {
  if (lease.is_ahead()) [[unlikely]] {
    detail::guarded(core, step_stage::boundary, [&] { lease.rewind(core.starts_at(), core.settings().on_unseekable); });
  }
  return detail::guarded(core, step_stage::source, [&] { return lease.peek(); });
}
/// A step of a loop that is done: in `step`; its batch is used up. There is no end of the data any more.
template<class Step, class Core, class Lease, class Outcome>
[[gnu::always_inline]] inline void keep_step(Core& core, Lease& lease, const loop_place& place, std::optional<Step>& step,
                                             Outcome& outcome) {
  step.emplace(std::move(outcome.result), outcome.step_after, place.attempt, place.rolled_back_from);  // in its place: no copy
  detail::guarded(core, step_stage::boundary, [&] { lease.advance(step->global_step); });
}

/// One step of a loop with the next batch, up to its boundary, which is the caller's. In `step` once it is done.
template<class Step, class Core, class Lease>
[[gnu::always_inline]] inline step_end take_step(Core& core, Lease& lease, const loop_place& place, std::optional<Step>& step) {
  const auto* batch = batch_of_step(core, lease);
  if (batch == nullptr) { return step_end::out_of_data; }
  auto outcome = [&]() __attribute__((always_inline)) {
    if constexpr (std::is_same_v<decltype(batch), const no_data::batch*>) {
      return stepwell::run_step(core, place.attempt, caller_request<all_hooks>{});
    } else {
      return stepwell::run_step(core, place.attempt, caller_request<all_hooks>{}, *batch);
    }
  }();
  detail::keep_step(core, lease, place, step, outcome);
  return step_end::done;
}

}  // namespace detail

// The frame of a loop refers to the hooks, which may be in an unnamed namespace of the program. That is no fault, and g++ takes
// it for one where the loop is made by a virtual function (any_session).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

/// The loop over a source. `held` is the source, or a reference_wrapper of it; a `no_data` for a model that needs no data.
template<class Step, class Core, class Held>
generator<const Step&> steps_over(Core& core, Held held) {
  using lease_type = source_lease<std::unwrap_reference_t<Held>>;
  lease_type lease = detail::guarded(core, step_stage::source, [&] {
    return lease_type(core.positions(), static_cast<std::unwrap_reference_t<Held>&>(held), core.raw().global_step());
  });
  core.note_end_of_source(false);
  std::optional<Step> step;
  detail::loop_place place;
  while (!core.should_stop()) {
    auto end = detail::step_end::to_recover;
    if (!core.recovery_due()) [[likely]] {
      end = detail::sorted_out(core, [&] {
        const auto taken = detail::take_step(core, lease, place, step);
        if (taken == detail::step_end::done) [[likely]] { core.boundary_or_fail(); }
        return taken;
      });
    }
    if (end == detail::step_end::done) [[likely]] {
      if (place.attempt != 1) [[unlikely]] { place = {}; }
      co_yield *step;
      continue;
    }
    if (end == detail::step_end::out_of_data && detail::is_over(core)) { break; }
    const auto failure = core.failure();
    place = detail::recover_loop(core);
    if (core.take_skip() && !lease.skip_present()) { std::rethrow_exception(failure); }
  }
  core.throw_if_singular();
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace stepwell
