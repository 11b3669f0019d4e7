// SPDX-License-Identifier: Apache-2.0
//
// The fast path of every session: one run with its hooks, and one step of a loop. Inlined, without allocation or indirect call.
#pragma once

#include "stepwell/base/detail/failure_kind.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
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

// ---- The actions of one run: `begin_run` (with `hold_in_run`), the run of the raw session, `end_run`. A driver executes them in this order.

/// The context of a run, and its trace.
template<class Core, class Caller>
struct run_scope {
  static constexpr bool traced = Core::may_trace() || Caller::has_options;

  run_scope(Core& core, const int& attempt) : context(core.raw(), core.requests(), attempt), trace(core.requests()) {}

  run_context<typename Core::raw_type> context;
  trace_of_run<traced> trace;
};

/// The action `before`: calls `before_run` of the hooks. Returns the request for the raw session.
template<class Core, class Caller>
[[gnu::always_inline]] inline auto begin_run(Core& core, run_scope<Core, Caller>& scope, const Caller& caller) {
  scope.trace.before_hooks(caller);
  const auto order = core.template prepare<run_scope<Core, Caller>::traced>(scope.context, caller);
  scope.trace.before_run(order);
  return order;
}
/// The action `run`, blocking.
template<class Core, class Scope, class Order, class... Args>
[[gnu::always_inline]] inline auto run_raw(Core& core, Scope& scope, const Order& order, Args&&... args) {
  [[maybe_unused]] const run_part<Scope::traced> part(scope.context.trace(), "run");
  return core.raw().run(order, std::forward<Args>(args)...);
}
/// The action `after`: calls `after_run` of the hooks. Returns the result of `extract_result`. `Held` is the result of `hold_in_run`.
template<class Core, class Caller, class Order, class Held, class Outcome>
[[gnu::always_inline]] inline auto end_run(Core& core, run_scope<Core, Caller>& scope, const Order& order, const Held& /*held*/,
                                           Outcome& outcome, const Caller& caller) {
  const auto step_after = outcome.step_after;  // read once: hooks that read the result through a pointer to a member keep it in memory
  scope.context.come_to(step_after);
  scope.trace.after_run(order);
  core.template finish<run_scope<Core, Caller>::traced>(scope.context, order, outcome, step_after);
  scope.trace.after_hooks(order);
  return detail::extract_result(caller, std::as_const(core.raw()), outcome, step_after);
}

/// Executes one run: `before_run` of the hooks, the raw session, `after_run` of the hooks. The caller processes the boundary, after it has
/// advanced the source.
/// @errors Exceptions of hooks and of the raw session. The hooks have been notified of them.
template<class Core, class Caller, class... Args>
[[gnu::always_inline]] inline auto run_step(Core& core, const int& attempt, const Caller& caller, Args&&... args) {
  auto stage = step_stage::before_run;
  try {
    run_scope<Core, Caller> scope(core, attempt);
    const auto order = detail::begin_run(core, scope, caller);
    stage = step_stage::run;
    const auto held = detail::hold_in_run(core.raw(), order);
    auto outcome = detail::run_raw(core, scope, order, std::forward<Args>(args)...);
    stage = step_stage::after_run;
    return detail::end_run(core, scope, order, held, outcome, caller);
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

/// True for a pointer to a batch of a source without data.
template<class Batch>
inline constexpr bool is_of_no_data = std::is_same_v<Batch, const no_data::batch*>;

// ---- What a step does, apart from its run: `begin` returns what the step is given, or null at the end of the data; `pass` calls a function
// with the arguments of the run; `keep` stores the value of the run, as the action `advance`. `outcome_of_failure` classifies the failure
// that is caught: it throws failures that neither end the data nor are followed by a recovery.

/// A step of a loop. A step that is done is stored in `step`.
template<class Step, class Core, class Cursor>
struct loop_work {
  using given_type = decltype(std::declval<Cursor&>().peek());
  static constexpr caller_request<all_hooks> caller = {};

  Cursor& cursor;
  const loop_place& place;
  std::optional<Step>& step;

  [[gnu::always_inline]] given_type begin(Core& core) const {
    if (cursor.is_ahead()) [[unlikely]] { rewind(core, cursor); }
    return detail::guarded(core, step_stage::source, [&in = cursor] { return in.peek(); });
  }
  [[nodiscard, gnu::always_inline]] auto show(Core& core) const noexcept { return cursor.show_epoch(core.requests().facts()); }
  template<class Function>
  [[gnu::always_inline]] auto pass(given_type batch, Function&& function) const {
    if constexpr (is_of_no_data<given_type>) {
      return function();
    } else {
      return function(*batch);
    }
  }
  template<class Value>
  [[gnu::always_inline]] void keep(Core& core, Value& value) const {
    step.emplace(std::move(value.result), value.step_after, place.attempt, place.rolled_back_from);  // in place, without a copy
    detail::guarded(core, step_stage::boundary,
                    [&in = cursor, &value] { in.template advance<counts_each_run<typename Core::raw_type>>(value.step_after); });
  }
  [[gnu::noinline, gnu::cold]] static void rewind(Core& core, Cursor& cursor) {
    const log_scope named(core.options().name);
    detail::guarded(core, step_stage::boundary, [&] { cursor.rewind(core.starts_at(), core.options().on_unseekable); });
  }
  [[gnu::noinline, gnu::cold]] static step_outcome outcome_of_failure(Core& core) {
    if (core.can_recover()) { return step_outcome::to_recover; }
    if (!core.is_end_of_data()) { throw; }
    core.forget_failure();
    return step_outcome::out_of_data;
  }
};

/// Does the step of `work`, without its boundary.
/// @errors Failures that are not the end of the data and cannot be recovered from.
template<class Core, class Work>
[[gnu::always_inline]] inline step_outcome take_step(Core& core, Work work) {
  try {
    const auto given = work.begin(core);
    if (given == nullptr) { return step_outcome::out_of_data; }
    [[maybe_unused]] const auto shown = work.show(core);
    auto value = work.pass(given, [&](auto&&... args) __attribute__((always_inline)) {
      return detail::run_step(core, work.place.attempt, work.caller, std::forward<decltype(args)>(args)...);
    });
    work.keep(core, value);
    return step_outcome::done;
  } catch (...) { return work.outcome_of_failure(core); }
}

/// The attempts of a step of a loop. `Holder` is a `loop_source`, or a reference to one that outlives the attempt.
template<class Step, class Core, class Holder>
class loop_attempt final : public step_attempt {
  using raw_type = typename Core::raw_type;
  using cursor_type = std::remove_reference_t<decltype(std::declval<Holder&>().cursor())>;
  using batch_type = decltype(std::declval<cursor_type&>().peek());

public:
  /// True if the model's steps are awaited.
  static constexpr bool is_awaited =
      is_of_no_data<batch_type> ? is_awaited_step<raw_type>() : is_awaited_step<raw_type, decltype(*std::declval<batch_type>())>();

  /// Makes the holder from `source`.
  template<class... Source>
  explicit loop_attempt(Core& core, Source&... source) : step_attempt(kind::loop, true), core_(core), source_(source...) {}

  void attach() override { source_.attach(); }
  void take() override {
    if constexpr (!is_awaited) { outcome = detail::take_step(core_, work()); }
  }
  bool skip_batch() override { return source_.cursor().skip_present(); }
  void detach() noexcept override { source_.detach(); }
  [[nodiscard, gnu::always_inline]] loop_work<Step, Core, cursor_type> work() noexcept { return {source_.cursor(), place, step}; }

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

/// Classifies the failure of a run, which has no end of data. Call it while the failure is caught. If the run is not repeated, throws its
/// failure, or the failure of a thread that caused it.
/// @see contract WRAP-5
template<bool Repeats, class Core>
[[gnu::noinline, gnu::cold]] step_outcome outcome_of_failed_run(Core& core) {
  if (!core.can_recover()) { throw; }
  if constexpr (!Repeats) { std::rethrow_exception(core.failure()); }
  return step_outcome::to_recover;
}

/// A run with stored arguments. Its value is stored there, too.
template<class Core, class Run>
struct run_work {
  Run& stored;
  const loop_place& place;
  typename Run::caller_type caller = Run::caller_of(stored.given);

  [[nodiscard]] auto* begin(Core& /*core*/) const noexcept {
    stored.value.reset();
    return &stored.given;
  }
  [[nodiscard]] static constexpr int show(const Core& /*core*/) noexcept { return 0; }
  template<class Function>
  [[gnu::always_inline]] auto pass(typename Run::given_type* given, Function&& function) const {
    return Run::pass(*given, std::forward<Function>(function));
  }
  void keep(Core& /*core*/, typename Run::value_type& value) const { stored.value.emplace(std::move(value)); }
  static step_outcome outcome_of_failure(Core& core) { return detail::outcome_of_failed_run<Run::repeats>(core); }
};

/// The attempts of a run.
template<class Core, class Run>
class run_attempt final : public step_attempt {
public:
  /// True if the model's step is awaited.
  static constexpr bool is_awaited = Run::is_awaited;

  run_attempt(Core& core, Run& run) noexcept : step_attempt(kind::run, Run::repeats), core_(core), run_(run) {}

  void take() override {
    if constexpr (!is_awaited) { outcome = detail::take_step(core_, work()); }
  }
  [[nodiscard]] run_work<Core, Run> work() noexcept { return {run_, place}; }

private:
  Core& core_;
  Run& run_;
};

/// The attempts of a step function. @see contract STEP-6
template<class Core, class Call>
class step_fn_attempt final : public step_attempt {
public:
  /// True if the step function is awaited.
  static constexpr bool is_awaited = coro::awaited<std::invoke_result_t<Call&>>;

  step_fn_attempt(Core& core, Call& call) noexcept : step_attempt(kind::step_fn, true), core_(core), call_(call) {}

  void take() override {
    if constexpr (!is_awaited) {
      try {
        call_();
        outcome = step_outcome::done;
      } catch (...) { outcome = outcome_of_failure(core_); }
    }
  }
  [[nodiscard]] step_fn_attempt& work() noexcept { return *this; }
  /// Notifies the hooks, unless a run inside the step function has done so already.
  /// @errors The failure, if no recovery follows, and `stop_iteration`, which ends the step function.
  static step_outcome outcome_of_failure(Core& core) {
    if (detail::kind_of(std::current_exception()) == errc::stop_iteration) { throw; }
    if (core.failure() != std::current_exception()) { core.on_failure(step_stage::run, std::current_exception()); }
    if (!core.can_recover()) { throw; }
    return step_outcome::to_recover;
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
    auto& cursor = holder.cursor();
    return detail::take_step(core, loop_work<Step, Core, std::remove_reference_t<decltype(cursor)>>{cursor, place, step});
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
