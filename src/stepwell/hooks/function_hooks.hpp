// SPDX-License-Identifier: Apache-2.0
//
// Hooks that call a function of yours: once in each period of steps or seconds, after each epoch, at the end, before each run for a feed, or
// at the end for values of the model, which TensorFlow calls final ops.
//
//     every_n_steps(100, [&](std::int64_t step) { ... })
//     every(30s, [&] { ... })
//     every_epoch([&](std::uint64_t epoch) { ... })
//     at_end([&](auto& session) { ... })
//     feed_fn_hook([&] { return feed(&model::rate, rate()); })
//     final_ops_hook(&model::accuracy)
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/coro/detail/awaited.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_args.hpp"

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// The state that a hook's function keeps between its calls. Checkpoints contain this state, under `stepwell/hook/NAME/`. `variables` is
/// called at each save and each restore, and returns the list of the variables. Example: `saved_state{"averages", [&] { return
/// sw::variables({{"sum", sum}, {"count", count}}); }}`.
struct saved_state {
  std::string name;
  std::function<variable_list()> variables;
};

namespace detail {

/// Throws unless `n` is above zero. @errors `invalid_argument_error` that names `function` and the number.
void check_every_n_steps(const char* function, std::int64_t n);
void check_every(seconds_value period);
void check_saved_state(const saved_state& state);

/// The type that stands in the place of `saved_state` if a function has no state.
struct no_state {};
inline void check_saved_state(const no_state& /*state*/) {}

/// Calls `function` with the first argument list that it accepts. If `values` are given, the lists are (context, values...), (values...),
/// (context) and (). Otherwise, they are (context), (global step) and ().
template<class Function, class Context, class... Values>
decltype(auto) call_hook_function(Function& function, Context& context, Values&&... values) {
  if constexpr (std::invocable<Function&, Context&, Values...>) {
    return std::invoke(function, context, std::forward<Values>(values)...);
  } else if constexpr (sizeof...(Values) > 0 && std::invocable<Function&, Values...>) {
    return std::invoke(function, std::forward<Values>(values)...);
  } else if constexpr (sizeof...(Values) > 0 && std::invocable<Function&, Context&>) {
    return std::invoke(function, context);
  } else if constexpr (sizeof...(Values) == 0 && std::invocable<Function&, std::int64_t>) {
    return std::invoke(function, std::int64_t{context.global_step()});
  } else {
    static_assert(std::invocable<Function&>,
                  "stepwell: the function of this hook takes (context, values...), (values...), or nothing; without values: (context), "
                  "(std::int64_t step), or nothing");
    return std::invoke(function);
  }
}
/// Like `call_hook_function`, without a result. A function that returns an awaitable does not compile, because nobody would await it. The
/// return type is `auto`, as in all callers, so that a compiler that only checks the syntax finds this error, too.
template<class Function, class Context, class... Values>
auto run_hook_function(Function& function, Context& context, Values&&... values) {
  static_assert(!coro::awaited<decltype(detail::call_hook_function(function, context, std::forward<Values>(values)...))>,
                "stepwell: the function of this hook returns an awaitable, but hooks are not awaited; start the work with asio::co_spawn");
  static_cast<void>(detail::call_hook_function(function, context, std::forward<Values>(values)...));
}

/// The base class of the hooks in this header. The derived classes decide when the function is called.
template<class Function, class State>
class function_hook {
public:
  [[nodiscard]] variable_list variables()
    requires std::same_as<State, saved_state>
  {
    return state_.variables();
  }
  [[nodiscard]] const std::string& state_name() const noexcept
    requires std::same_as<State, saved_state>
  {
    return state_.name;
  }

protected:
  function_hook(Function function, State state) : function_(std::move(function)), state_(std::move(state)) { check_saved_state(state_); }

  /// Calls the function if `is_due` is true.
  template<class Context, class... Values>
  auto call_if(bool is_due, Context& context, Values&&... values) {
    if (is_due) { detail::run_hook_function(function_, context, std::forward<Values>(values)...); }
  }

  Function function_;
  [[no_unique_address]] State state_;
};

}  // namespace detail

/// The hook that `every_n_steps` and `every` return.
template<class Function, class State, class... Projections>
class periodic_hook : public detail::function_hook<Function, State> {
  using base = detail::function_hook<Function, State>;

public:
  periodic_hook(std::int64_t n, Function function, fetch_pack<Projections...> wanted, State state)
      : base(std::move(function), std::move(state)), n_(n), wanted_(std::move(wanted)) {
    detail::check_every_n_steps("every_n_steps", n);
  }
  periodic_hook(seconds_value period, Function function, fetch_pack<Projections...> wanted, State state)
      : base(std::move(function), std::move(state)), period_(period), wanted_(std::move(wanted)) {
    detail::check_every(period);
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    const std::int64_t step = session.global_step();
    last_ = n_ > 0 ? step / n_ : 0;
    if (n_ > 0) { return; }
    timer_ = second_or_step_timer({.every_secs = period_.duration()}, session.time());
    timer_.update_last_triggered_step(step);  // the first call is due after one period
  }

  auto before_run(auto& context) {
    if constexpr (sizeof...(Projections) > 0) {
      is_due_ = is_due(context.global_step() + 1);
      return is_due_ ? std::optional(wanted_) : std::nullopt;
    }
  }

  auto after_run(auto& context, const auto& values) {
    const std::int64_t step = context.global_step();
    if constexpr (sizeof...(Projections) > 0) {
      if (std::exchange(is_due_, false) && note(step)) { call_with(context, values, std::index_sequence_for<Projections...>()); }
    } else {
      this->call_if(is_due(step) && note(step), context);
    }
  }

private:
  [[nodiscard]] bool is_due(std::int64_t step) const noexcept { return n_ > 0 ? step / n_ > last_ : timer_.should_trigger_for_step(step); }
  bool note(std::int64_t step) {
    if (n_ > 0) {
      last_ = step / n_;
    } else {
      timer_.update_last_triggered_step(step);
    }
    return true;
  }
  template<std::size_t... I>
  auto call_with(auto& context, const auto& values, std::index_sequence<I...>) {
    std::tuple<decltype(values.template get<I>())...> all{values.template get<I>()...};  // braces: evaluated in order
    detail::run_hook_function(this->function_, context, std::get<I>(std::move(all))...);
  }

  std::int64_t n_ = 0;  // 0 if the period is in seconds
  seconds_value period_;
  [[no_unique_address]] fetch_pack<Projections...> wanted_;
  std::int64_t last_ = 0;  // index of the period (global step / `n_`) that was handled most recently
  second_or_step_timer timer_;
  bool is_due_ = false;
};

/// The hook that `every_epoch` returns.
template<class Function, class State>
class every_epoch_hook : public detail::function_hook<Function, State> {
public:
  every_epoch_hook(Function function, State state) : detail::function_hook<Function, State>(std::move(function), std::move(state)) {}

  auto after_run(auto& context, const auto&) {
    const auto at = context.epoch();
    this->call_if(at && at->is_last, context, at ? at->epoch : std::uint64_t{0});
  }
};

/// The hook that `at_end` returns.
template<class Function, class State>
class at_end_hook : public detail::function_hook<Function, State> {
public:
  at_end_hook(Function function, State state) : detail::function_hook<Function, State>(std::move(function), std::move(state)) {}

  auto end(auto& session) { this->call_if(true, session); }
};

/// Returns a hook that calls `function` once per `n` global steps: after the run that reaches or passes a multiple of `n`. A resumed run
/// therefore calls `function` after the same steps as an uninterrupted run. `function` takes the context, the global step, or nothing. If
/// `fetch(...)` is given, `function` takes the context and the fetched values, the fetched values alone, the context alone, or nothing:
/// `every_n_steps(100, [](float loss) { ... }, fetch(&result::loss))`. The values are fetched only in the runs after which `function` is
/// called. `function` may change the model; the change is part of the next checkpoint. If a `saved_state` is given, the checkpoints
/// contain its variables.
/// @errors `invalid_argument_error` if `n` is below 1, or if `saved_state` has no name or no function. If `function` throws, the run fails.
/// @cost One division for each run.
template<class Function, class State = detail::no_state>
  requires(std::same_as<State, detail::no_state> || std::same_as<State, saved_state>)
[[nodiscard]] periodic_hook<Function, State> every_n_steps(std::int64_t n, Function function, State state = {}) {
  return periodic_hook<Function, State>(n, std::move(function), {}, std::move(state));
}
template<class Function, class... Projections, class State = detail::no_state>
[[nodiscard]] periodic_hook<Function, State, Projections...> every_n_steps(std::int64_t n, Function function,
                                                                           fetch_pack<Projections...> wanted, State state = {}) {
  return periodic_hook<Function, State, Projections...>(n, std::move(function), std::move(wanted), std::move(state));
}

/// Like `every_n_steps`, but calls `function` after the first run that ends at least `period` after the previous call: `every(30s, [&] {
/// ... })`. Before the first call, the period counts from the creation of the session. After a recovery, it counts from the recovery. The
/// speed of the machine decides after which steps `function` is called, so `function` should not change the model.
/// @errors `invalid_argument_error` unless `period` is above zero.
/// @cost One relaxed load for each run. No clock is read.
template<class Function, class State = detail::no_state>
  requires(std::same_as<State, detail::no_state> || std::same_as<State, saved_state>)
[[nodiscard]] periodic_hook<Function, State> every(seconds_value period, Function function, State state = {}) {
  return periodic_hook<Function, State>(period, std::move(function), {}, std::move(state));
}
template<class Function, class... Projections, class State = detail::no_state>
[[nodiscard]] periodic_hook<Function, State, Projections...> every(seconds_value period, Function function,
                                                                   fetch_pack<Projections...> wanted, State state = {}) {
  return periodic_hook<Function, State, Projections...>(period, std::move(function), std::move(wanted), std::move(state));
}

/// Returns a hook that calls `function` after the step with the last batch of each epoch, in loops over a source with epochs
/// (`data::epoch_source`, such as `data::shuffled_batches`). `function` takes the context and the number of the epoch, the number alone,
/// the context alone, or nothing. Epochs are counted from 0. A resumed run calls `function` after the same batches as an uninterrupted run.
/// @errors If `function` throws, the run fails.
/// @cost In a loop over such a source, one call of its `is_last_of_epoch` for each step.
template<class Function, class State = detail::no_state>
[[nodiscard]] every_epoch_hook<Function, State> every_epoch(Function function, State state = {}) {
  return every_epoch_hook<Function, State>(std::move(function), std::move(state));
}

/// Returns a hook that calls `function` once, at the close, before the last checkpoint is saved. If an exception ends the session,
/// `function` is not called. `function` takes the session (`session_handle`), the global step, or nothing.
/// @errors `close` throws the exceptions of `function`.
template<class Function, class State = detail::no_state>
[[nodiscard]] at_end_hook<Function, State> at_end(Function function, State state = {}) {
  return at_end_hook<Function, State>(std::move(function), std::move(state));
}

/// Calls a function before every run. The function returns a feed, which the hook adds to the run: `feed_fn_hook([&] { return
/// feed(&model::rate, schedule()); })`. For several feeds, the function returns `feeds(...)`.
/// @errors `failed_precondition_error`, thrown by the run, if the same key is fed by the caller or by another hook.
/// @see contract HOOK-FEED, RUN-5
template<std::invocable Function>
class feed_fn_hook {
public:
  explicit feed_fn_hook(Function feed_fn) : feed_fn_(std::move(feed_fn)) {}

  auto before_run(auto& /*context*/) { return run_args{.feed = feed_fn_()}; }

private:
  Function feed_fn_;
};

namespace detail {

// The type that an op returns, found by overload resolution; the functions are never defined.
template<class R, class M>
  requires(!std::is_function_v<R>)
std::type_identity<R> type_of_op(R M::*);
template<class R, class M>
std::type_identity<R> type_of_op(R (M::*)());
template<class R, class M>
std::type_identity<R> type_of_op(R (M::*)() const);
template<class R, class M>
std::type_identity<R> type_of_op(R (*)(M));
template<class R, class F, class M>
std::type_identity<R> type_of_call(R (F::*)(M));
template<class R, class F, class M>
std::type_identity<R> type_of_call(R (F::*)(M) const);
template<class Op>
auto type_of_op(Op) -> decltype(detail::type_of_call(&Op::operator()));

/// The type of the result of an op: the type of the member that the op names, or of the value that the op returns.
template<class Op>
struct final_value {
  static_assert(
      requires(Op op) { detail::type_of_op(op); },
      "stepwell: a final op is a member of the model, or a callable with named parameter types, "
      "e.g. [](const model& m) { return m.accuracy; }");
  using type = std::remove_cvref_t<typename decltype(detail::type_of_op(std::declval<Op>()))::type>;
};

inline void warn_final_ops_read_input() {
  log_warning(
      "an out_of_range_error or stop_iteration is thrown by the code in final_ops_hook. This typically means that the final ops have a "
      "dependency back to some input source, which should not happen: they should read what the steps have left in the model, rather than "
      "another batch");
}

}  // namespace detail

/// Calls each op with the model at a clean close and stores the results. An op is a member of the model or a callable that takes the model:
/// `final_ops_hook{&model::accuracy, [](const model& m) { return norm(m.weights); }}`. A session over another kind of raw session calls an
/// op with the result of the raw session's function `subject()`. If there is no such function, the op gets the raw session itself.
/// @errors `close` throws the exception of an op. If the exception is an `out_of_range_error` or a `stop_iteration`, a warning is logged
///   first, because in an op these errors do not mean the end of the data.
/// @see contract HOOK-FINAL, D-19
template<class... Ops>
class final_ops_hook {
public:
  using values_type = std::tuple<typename detail::final_value<Ops>::type...>;

  explicit final_ops_hook(Ops... final_ops) : ops_(std::move(final_ops)...) {}

  void begin() { values_.reset(); }

  void end(auto& session) {
    if constexpr (sizeof...(Ops) > 0) {
      [[maybe_unused]] const auto alone = detail::alone_with(session.raw_session());  // other sessions may still step the model
      auto& raw = session.raw_session();
      compute(detail::subject_in_raw(raw));
    }
  }

  /// Returns the results, in the order of the ops. Empty before `end`, if an op has thrown, or if there are no ops.
  [[nodiscard]] const std::optional<values_type>& final_ops_values() const noexcept { return values_; }

private:
  void compute(auto& model) {
    try {
      values_ = std::apply([&](Ops&... op) { return values_type{std::invoke(op, model)...}; }, ops_);
    } catch (const out_of_range_error&) {
      detail::warn_final_ops_read_input();
      throw;
    } catch (const stop_iteration&) {
      detail::warn_final_ops_read_input();
      throw;
    }
  }

  std::tuple<Ops...> ops_;
  std::optional<values_type> values_;
};

}  // namespace stepwell
