// SPDX-License-Identifier: Apache-2.0
//
// The fast path of every session: one run with its hooks, and one step of a loop. Inlined, without allocation or indirect call.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_request.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/detail/session_protocol.hpp"
#include "stepwell/session/detail/source_cursor.hpp"
#include "stepwell/session/detail/source_registrations.hpp"
#include "stepwell/session/training_session.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {

// ---- The arguments of runs and loops. They are checked first: after a wrong one, nothing else is compiled, and the compiler prints one short
// message, which names both types.

/// True if `run` of `Raw` accepts these arguments of a step, as lvalues or as they are.
template<class Raw, class... Args>
consteval bool takes_arguments() {
  if constexpr (has_takes<Raw>) {
    return Raw::template takes<std::remove_reference_t<Args>&...> || Raw::template takes<Args...>;
  } else {
    return true;
  }
}
/// True if `Arg` is a source or a range of batches that a step of `Raw` accepts.
template<class Raw, class Arg>
consteval bool is_source_for() {
  if constexpr (data::batch_source<Arg>) {
    return takes_arguments<Raw, decltype(*std::declval<std::remove_reference_t<Arg>&>().peek())>();
  } else if constexpr (std::ranges::input_range<Arg>) {
    return takes_arguments<Raw, std::ranges::range_reference_t<Arg>>();
  } else {
    return false;
  }
}

/// Does not compile if `Takes` is false. `Model` has the step, `Args` are the arguments that it does not take.
template<bool Takes, bool IsSource, class Model, class... Args>
consteval bool check_step_arguments() {
  static_assert(Takes || !IsSource,
                "stepwell: run takes one batch, not a source of batches: write session.next(source) for one step, or "
                "session.run_all(source) or a loop over session.steps(source) for all; an asynchronous session has async_next(source)");
  static_assert(
      Takes || IsSource,
      "stepwell: the model has no step that takes these arguments; the compiler names both, as Model and Args, near this message");
  return Takes;
}
/// Does not compile if `CanRead` is false. `Model` is trained, `Result` is the result of its step.
template<bool CanRead, class Fetches, class Result, class Model>
consteval bool check_fetches() {
  static_assert(
      CanRead,
      "stepwell: this session cannot read a value that this call fetches; a model session reads members of the step's result and of the "
      "model, and callables that take one of them or both");
  return CanRead;
}

template<class Raw, class Arg>
consteval bool can_fetch() {
  if constexpr (fetches<Arg>) {
    return check_fetches<can_read_all<Raw, Arg>, Arg, typename Raw::result_type, subject_of<Raw>>();
  } else {
    return true;
  }
}
template<class Raw, class... Args, std::size_t... I>
consteval bool can_step_with(std::index_sequence<I...>) {
  using all = std::tuple<Args...>;
  return check_step_arguments<takes_arguments<Raw, std::tuple_element_t<I, all>...>(),
                              (is_source_for<Raw, std::tuple_element_t<I, all>>() || ...), subject_of<Raw>,
                              std::tuple_element_t<I, all>...>();
}
/// Returns true if `Args` are arguments of a run of `Raw`. Otherwise does not compile.
template<class Raw, class... Args>
consteval bool can_run() {
  return (can_fetch<Raw, std::remove_cvref_t<Args>>() && ...) && can_step_with<Raw, Args...>(places_for_step<Args...>());
}
/// Returns true if the batches of `Source` are arguments of a step of `Raw`. Otherwise does not compile.
template<class Raw, class Source>
consteval bool can_step_over() {
  using batch = decltype(*std::declval<std::remove_reference_t<Source>&>().peek());
  if constexpr (std::is_same_v<std::remove_cvref_t<Source>, no_data>) {
    return check_step_arguments<takes_arguments<Raw>(), false, subject_of<Raw>>();
  } else {
    return check_step_arguments<takes_arguments<Raw, batch>(), false, subject_of<Raw>, batch>();
  }
}

/// Returns the result of `raw.enter(order)`, which has to be held while the raw session runs and its values are read. Returns 0 if there is
/// no `enter`.
template<class Raw, class Order>
[[nodiscard, gnu::always_inline]] inline auto enter(Raw& raw, const Order& order) {
  if constexpr (has_enter<Raw, const Order>) {
    return raw.enter(order);
  } else {
    return 0;
  }
}
/// Returns true if `run` of `Raw` reads the feeds of its request.
template<class Raw>
constexpr bool reads_feeds() {
  if constexpr (has_reads_feeds<Raw>) {
    return Raw::reads_feeds;
  } else {
    return false;
  }
}
/// Passes the feeds of `order` to the raw session, for the duration of the run. Does nothing for a raw session whose `run` reads the feeds.
template<class Raw, class Order>
auto feed_into(Raw& raw, const Order& order) {
  if constexpr (!Order::has_feeds) {
    return 0;
  } else if constexpr (has_feed<Raw, const Order>) {
    return raw.feed(order);
  } else {
    static_assert(reads_feeds<Raw>(),
                  "stepwell: this raw session cannot be fed: give it feed(order), or, if its run reads order.feeds(), "
                  "static constexpr bool reads_feeds = true");
    return 0;
  }
}
/// The objects that are held while the raw session runs, and until the hooks and the caller have read the values, which may be references.
/// `fed` is destroyed first.
template<class Entered, class Fed>
struct held_in_run {
  Entered entered;
  Fed fed;
};
template<class Raw, class Order>
[[nodiscard, gnu::always_inline]] inline auto hold_in_run(Raw& raw, const Order& order) {
  return held_in_run<decltype(detail::enter(raw, order)), decltype(detail::feed_into(raw, order))>{
      detail::enter(raw, order), detail::feed_into(raw, order)};  // braces: evaluated in order
}

/// What remains of the outcome of a run: the result, and the global step after the run. (With the step before the run, the compiler would
/// copy both steps with one wide load, which has to wait for the two narrow stores before it.)
template<class Result>
struct finished_run {
  Result result;
  std::int64_t step_after;
};

/// Returns the result of a run, or copies of the values that its caller fetched.
template<class Raw, class Outcome, class Caller>
[[gnu::always_inline]] inline auto extract_result(const Caller& caller, const Raw& raw, Outcome& outcome, std::int64_t step_after) {
  using pack_type = typename Caller::pack_type;
  if constexpr (std::is_void_v<pack_type>) {
    return finished_run<decltype(outcome.result)>{std::move(outcome.result), step_after};
  } else {
    const run_values<Raw, Outcome, pack_type> values(raw, outcome, caller.pack());
    if constexpr (is_fetch_list<pack_type>::value) {
      std::vector<owned_t<decltype(values[0])>> all;
      for (std::size_t i = 0; i < values.size(); ++i) { all.emplace_back(values[i]); }
      return all;
    } else {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::tuple<owned_t<decltype(values.template get<I>())>...>{values.template get<I>()...};  // braces: evaluated in order
      }(std::make_index_sequence<values.size()>{});
    }
  }
}
template<class Raw, class Caller>
using extracted = decltype(detail::extract_result(std::declval<const Caller&>(), std::declval<const Raw&>(),
                                                  std::declval<typename Raw::outcome_type&>(), 0));

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

// Blocking and awaited runs are these parts: `begin_run`, `hold_in_run`, the run of the raw session, and `end_run`.

/// True if a run of `Core` for `Caller` contains code for tracing.
template<class Core, class Caller>
inline constexpr bool is_traced_run = Core::may_trace() || Caller::has_options;

/// Calls `before_run` of the hooks. Returns the request for the raw session.
template<class Core, class Trace, class Context, class Caller>
[[gnu::always_inline]] inline auto begin_run(Core& core, Trace& trace, Context& context, const Caller& caller) {
  trace.before_hooks(caller);
  const auto order = core.template prepare<is_traced_run<Core, Caller>>(context, caller);
  trace.before_run(order);
  return order;
}
/// Calls `after_run` of the hooks. Returns the result of `extract_result`. @pre The object of `hold_in_run` is alive.
template<class Core, class Trace, class Context, class Order, class Outcome, class Caller>
[[gnu::always_inline]] inline auto end_run(Core& core, Trace& trace, Context& context, const Order& order, Outcome& outcome,
                                           const Caller& caller) {
  const auto step_after = outcome.step_after;  // read once: hooks that read the result through a pointer to a member keep it in memory
  context.come_to(step_after);
  trace.after_run(order);
  core.template finish<is_traced_run<Core, Caller>>(context, order, outcome, step_after);
  trace.after_hooks(order);
  return detail::extract_result(caller, std::as_const(core.raw()), outcome, step_after);
}

/// Executes one run: `before_run` of the hooks, the raw session, `after_run` of the hooks. The caller processes the boundary, after it has
/// advanced the source.
/// @errors Exceptions of hooks and of the raw session. The hooks have been notified of them.
template<class Core, class Caller, class... Args>
[[gnu::always_inline]] inline auto run_step(Core& core, const int& attempt, const Caller& caller, Args&&... args) {
  auto& raw = core.raw();
  auto stage = step_stage::before_run;
  try {
    constexpr bool traced = is_traced_run<Core, Caller>;
    run_context<std::remove_cvref_t<decltype(raw)>> context(raw, core.requests(), attempt);
    trace_of_run<traced> trace(core.requests());
    const auto order = detail::begin_run(core, trace, context, caller);
    stage = step_stage::run;
    [[maybe_unused]] const auto held = detail::hold_in_run(raw, order);
    auto outcome = [&] {
      [[maybe_unused]] const run_part<traced> part(context.trace(), "run");
      return raw.run(order, std::forward<Args>(args)...);
    }();
    stage = step_stage::after_run;
    return detail::end_run(core, trace, context, order, outcome, caller);
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
  } catch (...) {
    if (core.can_recover()) { return step_outcome::to_recover; }
    if (!core.is_end_of_data()) { throw; }
    core.forget_failure();
  }
  return step_outcome::out_of_data;
}
/// Like `classify`, for a run, which has no end of data. Call it while the failure of the run is caught. If the run is not repeated, throws
/// its failure, or the failure of a thread that caused it.
/// @see contract WRAP-5
template<bool Repeats, class Core>
step_outcome classify_failed_run(Core& core) {
  if (!core.can_recover()) { throw; }
  if constexpr (!Repeats) { std::rethrow_exception(core.failure()); }
  return step_outcome::to_recover;
}

/// True for a pointer to a batch of a source without data.
template<class Batch>
inline constexpr bool is_of_no_data = std::is_same_v<Batch, const no_data::batch*>;

/// Calls `function` with the batch, or without an argument if it is that of a source without data.
template<class Batch, class Function>
[[gnu::always_inline]] inline auto with_batch(Batch* batch, Function&& function) {
  if constexpr (is_of_no_data<Batch*>) {
    return function();
  } else {
    return function(*batch);
  }
}

/// Returns the batch for the next step of a loop; null at the end of the data.
template<class Core, class Cursor>
[[gnu::always_inline]] inline auto batch_of_step(Core& core, Cursor& cursor) {
  if (cursor.is_ahead()) [[unlikely]] {
    detail::guarded(core, step_stage::boundary, [&] { cursor.rewind(core.starts_at(), core.options().on_unseekable); });
  }
  return detail::guarded(core, step_stage::source, [&] { return cursor.peek(); });
}
/// Stores a completed step of a loop, and advances the source.
template<class Step, class Core, class Cursor, class Outcome>
[[gnu::always_inline]] inline void keep_step(Core& core, Cursor& cursor, const loop_place& place, std::optional<Step>& step,
                                             Outcome& outcome) {
  step.emplace(std::move(outcome.result), outcome.step_after, place.attempt, place.rolled_back_from);  // in place, without a copy
  detail::guarded(core, step_stage::boundary,
                  [&] { cursor.template advance<counts_each_run<typename Core::raw_type>>(step->global_step); });
}

/// Does one step of a loop with the next batch, without its boundary. Stores the step in `step` if it is done.
template<class Step, class Core, class Cursor>
[[gnu::always_inline]] inline step_outcome take_step(Core& core, Cursor& cursor, const loop_place& place, std::optional<Step>& step) {
  const auto* batch = detail::batch_of_step(core, cursor);
  if (batch == nullptr) { return step_outcome::out_of_data; }
  [[maybe_unused]] const auto shown = cursor.show_epoch(core.requests().facts());
  auto outcome = detail::with_batch(batch, [&](auto&... batches) __attribute__((always_inline)) {
    return detail::run_step(core, place.attempt, caller_request<all_hooks>{}, batches...);
  });
  detail::keep_step(core, cursor, place, step, outcome);
  return step_outcome::done;
}

/// The source of a loop, registered with the session from `attach` to `detach`.
/// @lifetime `core` and `source` must outlive it.
template<class Core, class Source>
class loop_source {
public:
  loop_source(Core& core, Source& source) noexcept : core_(core), source_(source) {}
  [[nodiscard]] bool is_attached() const noexcept { return cursor_.has_value(); }
  [[nodiscard]] auto& cursor() noexcept { return *cursor_; }
  /// Registers the source, before the first step or again after its end. @errors Those of `source_cursor`.
  void attach() {
    if (cursor_) { return; }
    detail::guarded(core_, step_stage::source,
                    [this] { cursor_.emplace(core_.positions(), source_, core_.raw().global_step(), core_.options().on_other_data); });
    core_.note_end_of_source(false);
  }
  void detach() noexcept { cursor_.reset(); }

private:
  Core& core_;
  Source& source_;
  std::optional<source_cursor<Source>> cursor_;
};

/// The registration of a source of type `Source`. It takes effect with the first step over the source.
/// @lifetime `core`, `all` and `source` must outlive it.
template<class Core, class Source>
class source_registration final : public source_registration_base, public loop_source<Core, Source> {
public:
  source_registration(Core& core, source_registrations& all, Source& source) : loop_source<Core, Source>(core, source), all_(all) {
    all_.add(this);
  }
  source_registration(const source_registration&) = delete;
  source_registration& operator=(const source_registration&) = delete;
  ~source_registration() override { all_.remove(this); }

  void release() noexcept override { this->detach(); }

private:
  source_registrations& all_;
};

/// A guard for a source that the caller lends to one call: outside of its lifetime, saves take the position that the source had at its end.
template<class Holder>
class source_in_use {
public:
  explicit source_in_use(Holder& holder) noexcept : holder_(holder) {
    if (holder_.is_attached()) { holder_.cursor().follow_source(); }
  }
  source_in_use(const source_in_use&) = delete;
  source_in_use& operator=(const source_in_use&) = delete;
  ~source_in_use() {
    if (holder_.is_attached()) { holder_.cursor().keep_position(); }
  }

private:
  Holder& holder_;
};

/// True if a step of `Raw` with these arguments is awaited.
template<class Raw, class... Args>
constexpr bool is_awaited_step() {
  if constexpr (has_awaits<Raw>) {
    return Raw::template awaits<Args...>;
  } else {
    return false;
  }
}

/// A step of a loop. `Holder` is a `loop_source`, or a reference to one that outlives the attempt. A step that is done is stored in `step`.
template<class Step, class Core, class Holder>
class loop_attempt final : public step_attempt {
  using raw_type = typename Core::raw_type;
  using batch_type = decltype(std::declval<Holder&>().cursor().peek());

public:
  /// True if the model's steps are awaited.
  static constexpr bool is_awaited =
      is_of_no_data<batch_type> ? is_awaited_step<raw_type>() : is_awaited_step<raw_type, decltype(*std::declval<batch_type>())>();

  /// Makes the holder from `source`.
  template<class... Source>
  explicit loop_attempt(Core& core, Source&... source) : step_attempt(kind::loop, true), core_(core), source_(source...) {}

  void attach() override { source_.attach(); }
  void take() override {
    if constexpr (!is_awaited) { outcome = take_inlined(core_); }
  }
  /// Sets `outcome` to the result of `step`, or to the kind of its failure. @errors Those of `classify`.
  template<class Function>
  void conclude(Function&& step) {
    outcome = detail::classify(core_, step);
  }
  /// Does the step without its boundary, and classifies its failure. `core` is the session of this attempt. The caller passes it, because
  /// it has it in a register.
  [[gnu::always_inline]] step_outcome take_inlined(Core& core) {
    return detail::classify(
        core, [this, &core]() __attribute__((always_inline)) { return detail::take_step(core, source_.cursor(), place, step); });
  }
  bool skip_batch() override { return source_.cursor().skip_present(); }
  void detach() noexcept override { source_.detach(); }
  [[nodiscard]] auto& cursor() noexcept { return source_.cursor(); }

  std::optional<Step> step;

private:
  Core& core_;
  Holder source_;
};

/// Returns true if `Raw` takes `Args` as lvalues. If it can only consume them, a run cannot be repeated.
template<class Raw, class... Args>
constexpr bool is_repeatable() {
  if constexpr (has_takes<Raw>) {
    return Raw::template takes<Args&...>;
  } else {
    return true;
  }
}

/// A run with the arguments of its caller. `Args` are the elements of a tuple: references, or values if the run outlives the call.
template<class Choice, class Core, class... Args>
class stored_run {
  using raw_type = typename Core::raw_type;
  using caller_places = places_for_caller<Args...>;
  using step_places = places_for_step<Args...>;
  template<std::size_t I>
  using element = std::tuple_element_t<I, std::tuple<Args...>>;

  template<std::size_t... I>
  static auto caller_in(const std::tuple<Args...>& arguments, std::index_sequence<I...>) {
    return caller_request<Choice, std::remove_cvref_t<element<I>>...>{{&std::as_const(std::get<I>(arguments))...}};
  }
  template<std::size_t... I>
  static constexpr bool repeats_in(std::index_sequence<I...>) {
    return is_repeatable<raw_type, std::remove_reference_t<element<I>>...>();
  }
  /// The type in which the step receives an argument: an lvalue if the run may be repeated, otherwise what the caller passed.
  template<std::size_t I>
  using passed = std::conditional_t<repeats_in(step_places()), std::remove_reference_t<element<I>>&, element<I>&&>;
  template<std::size_t... I>
  static constexpr bool awaits_in(std::index_sequence<I...>) {
    return is_awaited_step<raw_type, passed<I>...>();
  }

public:
  using given_type = std::tuple<Args...>;
  using caller_type = decltype(caller_in(std::declval<const given_type&>(), caller_places()));
  using value_type = extracted<raw_type, caller_type>;
  /// True if it can be repeated with the same arguments.
  static constexpr bool repeats = repeats_in(step_places());
  /// True if the model's step is awaited.
  static constexpr bool is_awaited = awaits_in(step_places());

  static caller_type caller_of(const given_type& arguments) { return caller_in(arguments, caller_places()); }
  /// Calls `function` with the arguments of the step.
  template<class Function>
  [[gnu::always_inline]] static decltype(auto) pass(given_type& arguments, Function&& function) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) -> decltype(auto) {
      return function(static_cast<passed<I>>(std::get<I>(arguments))...);
    }(step_places());
  }
  /// Does the run, without its boundary.
  [[gnu::always_inline]] static value_type take(Core& core, int attempt, given_type& arguments) {
    const auto caller = caller_of(arguments);
    return pass(arguments, [&](auto&&... args) __attribute__((always_inline)) {
      return detail::run_step(core, attempt, caller, std::forward<decltype(args)>(args)...);
    });
  }
  /// Converts the value of a run to the result for the caller.
  [[gnu::always_inline]] static auto result_of(value_type&& value) { return result_for_caller<raw_type, caller_type>(std::move(value)); }

  explicit stored_run(given_type all) : given(std::move(all)) {}

  given_type given;
  std::optional<value_type> value;  ///< Set when the run is done.
};

/// A run, attempted once or several times.
template<class Core, class Run>
class run_attempt final : public step_attempt {
public:
  /// True if the model's step is awaited.
  static constexpr bool is_awaited = Run::is_awaited;

  run_attempt(Core& core, Run& run) noexcept : step_attempt(kind::run, Run::repeats), core_(core), run_(run) {}

  void take() override {
    if constexpr (!is_awaited) {
      conclude([this] {
        run_.value.reset();
        run_.value.emplace(Run::take(core_, place.attempt, run_.given));
        return step_outcome::done;
      });
    }
  }
  /// Sets `outcome` to the result of `step`, or to the kind of its failure. @errors Those of `classify_failed_run`.
  template<class Function>
  [[gnu::always_inline]] void conclude(Function&& step) {
    try {
      outcome = step();
    } catch (...) { outcome = detail::classify_failed_run<Run::repeats>(core_); }
  }
  [[nodiscard]] Run& run() noexcept { return run_; }

private:
  Core& core_;
  Run& run_;
};

/// A call of a step function, attempted once or several times. @see contract STEP-6
template<class Core, class Call>
class step_fn_attempt final : public step_attempt {
public:
  /// True if the step function is awaited.
  static constexpr bool is_awaited = coro::awaited<std::invoke_result_t<Call&>>;

  step_fn_attempt(Core& core, Call& call) noexcept : step_attempt(kind::step_fn, true), core_(core), call_(call) {}

  void take() override {
    if constexpr (!is_awaited) {
      conclude([this] {
        call_();
        return step_outcome::done;
      });
    }
  }
  /// Sets `outcome` to the result of `step`. If `step` fails, notifies the hooks, unless a run inside it has done so already.
  /// @errors The failure, if no recovery follows, and `stop_iteration`, which ends the step function.
  template<class Function>
  void conclude(Function&& step) {
    try {
      outcome = step();
    } catch (const stop_iteration&) { throw; } catch (...) {
      if (core_.failure() != std::current_exception()) { core_.on_failure(step_stage::run, std::current_exception()); }
      if (!core_.can_recover()) { throw; }
      outcome = step_outcome::to_recover;
    }
  }
  [[nodiscard]] Call& call() noexcept { return call_; }

private:
  Core& core_;
  Call& call_;
};

// ---- The fast path of asynchronous sessions: an awaited function calls it first.

/// Does the next step of a loop, without its boundary, unless it has to be awaited.
template<class Step, class Core, class Holder>
[[gnu::noinline]] step_outcome try_next(Core& core, Holder& holder, const loop_place& place, std::optional<Step>& step) {
  if constexpr (loop_attempt<Step, Core, Holder&>::is_awaited) {
    return step_outcome::not_taken;
  } else {
    return detail::classify(core, [&]() __attribute__((always_inline)) { return detail::take_step(core, holder.cursor(), place, step); });
  }
}

/// Does the run, without its boundary, unless it has to be awaited.
template<class Core, class Run>
[[gnu::noinline]] step_outcome try_run(Core& core, Run& run) {
  run_attempt<Core, Run> attempt(core, run);
  attempt.take();
  return attempt.outcome;
}

}  // namespace stepwell::detail
