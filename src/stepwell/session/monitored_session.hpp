// SPDX-License-Identifier: Apache-2.0
//
// The monitored session: a raw session, which executes the runs, with hooks that are called around each run. The state is restored at the
// start and saved between steps. After a transient failure (`aborted_error`, `unavailable_error`), the session recovers: it restores the
// newest checkpoint and repeats the step.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/generator.hpp"
#include "stepwell/creation/session_creator.hpp"
#include "stepwell/creation/session_manager.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/session/common_session.hpp"
#include "stepwell/session/detail/blocking_driver.hpp"
#include "stepwell/session/detail/session_impl.hpp"
#include "stepwell/session/training_session.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// The argument of a step function. A step function is a function of the caller that does several runs as one unit; `run_step_fn` calls it.
/// @lifetime Valid during the call of the step function.
template<class Session>
class step_context {
public:
  explicit step_context(Session& session) noexcept : session_(session) {}
  step_context(const step_context&) = delete;
  step_context& operator=(const step_context&) = delete;

  /// Returns the current raw session. Runs made on it directly call no hooks. @see contract STEP-4, D-11
  [[nodiscard]] auto& session() const noexcept { return session_.raw_session(); }
  /// Does one step with hooks, like `run` of the monitored session. A recovery repeats the whole step function, not only this call. @see
  /// contract STEP-7
  template<class... Args>
  auto run_with_hooks(Args&&... args) const {
    return session_.run_within_step(std::forward<Args>(args)...);
  }
  /// Ends the step function, and a loop inside of `with`. @errors Always throws `stop_iteration`, which `run_step_fn` passes on to its
  /// caller, and which `with` handles as the normal end of the loop. @see contract STEP-5
  [[noreturn]] void request_stop() const { throw stop_iteration("the step function asked to stop"); }

private:
  Session& session_;
};

/// A session for a training loop. It is constructed from a model or a raw session, and hooks: `monitored_session session(model,
/// stop_at_step_hook{{.last_step = 100}});`
///
/// @lifetime The session refers to the model, which must outlive the session. The session can be moved, even during a loop over `steps`. Each
/// function of a moved-from session throws `failed_precondition_error`, except `abandon` and `came_from_hook`, which do nothing.
/// @threads One thread at a time. `request_stop`, `should_stop`, `stop_reason`, `metrics` and `watched` may be called on any thread.
/// @see contract MON
template<raw_session Raw, class... Held>
class monitored_session : public blocking_session {
  using core_type = session_impl<Raw, Held...>;

public:
  using raw_type = Raw;
  using result_type = typename Raw::result_type;
  using step_type = step_result<result_type>;

  /// Calls `begin` of the hooks. Then makes the raw session ready, and restores a checkpoint if there is one (see
  /// `session_setup::find_checkpoint`). Then calls `after_create_session` of the hooks. If making the raw session ready or
  /// `after_create_session` fails with a transient failure, retries both, as in a recovery. `setup` is either `training_options` or a
  /// `session_setup`. `given` is the raw session, the model, or a creator, which creates the raw session at the start and at each recovery.
  /// @errors Exceptions of hooks and of the restore. `invalid_argument_error` for invalid options, and for names of variables or hooks that
  ///         are used twice or are reserved for the library. `invalid_argument_error` also if an option of a default hook is set: this
  ///         session has no default hooks.
  /// @see contract MON-1, MON-2
  template<detail::is_session_setup Setup = training_options, detail::origin_of<Raw> Given>
  explicit monitored_session(Setup setup, Given&& given, Held... hooks)
      : blocking_session(std::make_unique<core_type>(std::move(setup),
                                                     detail::make_origin<Raw>(std::forward<Given>(given), detail::initial_state_for(setup)),
                                                     std::move(hooks)...)) {}
  template<detail::origin_of<Raw> Given>
    requires(!std::is_same_v<std::remove_cvref_t<Given>, monitored_session>)
  explicit monitored_session(Given&& given, Held... hooks)
      : monitored_session(session_setup{}, std::forward<Given>(given), std::move(hooks)...) {}

  monitored_session(monitored_session&&) noexcept = default;
  monitored_session& operator=(monitored_session&&) = delete;

  /// Does one step with `args`, including the calls of hooks. Returns the result of the model's `step`. After a transient failure, the
  /// session recovers and repeats the step with the same arguments. If the model's `step` accepts an argument only as an rvalue, the step
  /// cannot be repeated, and the failure is thrown instead.
  ///
  /// `args` may also contain the following objects, in any position. With `fetch(...)`, the call returns copies of the fetched values as a
  /// tuple instead of the result: `auto [loss] = session.run(fetch(&result::loss), batch);`. `feed(key, value)` and `run_options` apply to
  /// this run. A `run_metadata` object is filled with the metadata of the run.
  /// @errors `failed_precondition_error` if a hook has requested a stop or the session is closed. Exceptions of the step, of hooks, and of
  /// background I/O. If `before_run` or `after_run` of a hook throws, the same function of later hooks is not called for this run.
  /// @see contract RUN-1, REC-2
  template<class... Args>
  [[gnu::always_inline]] auto run(Args&&... args) {
    if constexpr (detail::can_run<Raw, Args...>()) { return run_with<all_hooks>(std::forward<Args>(args)...); }
  }
  /// Like `run`, but only with the hooks that `Choice` selects: `run_with<only<progress_hook<>>>(batch)`. For the other hooks, `before_run`
  /// and `after_run` are not called.
  template<class Choice, class... Args>
  [[gnu::always_inline]] auto run_with(Args&&... args) {
    if constexpr (detail::can_run<Raw, Args...>()) {
      using run_type = detail::stored_run<Choice, core_type, Args&&...>;
      return run_type::result_of(detail::run_call<run_type, core_type>(gate(), std::forward_as_tuple(std::forward<Args>(args)...)));
    }
  }

  /// Calls `step_fn(context)` and returns its result; see `step_context`. After a transient failure, even if the code of `step_fn` itself
  /// throws it, the session recovers and calls the whole function again. The runs that `step_fn` makes on the raw session, and the side
  /// effects of these runs, are then repeated, too.
  /// @errors `failed_precondition_error` if the session is closed. Exceptions of `step_fn`, except transient failures from which the
  ///         session recovers.
  /// @see contract STEP-6
  template<class StepFn>
  auto run_step_fn(StepFn&& step_fn) {
    static_assert(std::is_invocable_v<StepFn&, step_context<monitored_session>&>,
                  "stepwell: `step_fn` may either have one `step_context` argument, taken by reference, or not be called");
    using result = std::invoke_result_t<StepFn&, step_context<monitored_session>&>;
    std::conditional_t<std::is_void_v<result>, char, std::optional<result>> returned{};
    auto call = [&] {
      step_context<monitored_session> context(*this);
      if constexpr (std::is_void_v<result>) {
        step_fn(context);
      } else {
        returned.emplace(step_fn(context));
      }
    };
    detail::step_fn_attempt<core_type, decltype(call)> attempt(core(), call);
    detail::drive(core(), core().protocol().step(attempt));
    if constexpr (!std::is_void_v<result>) { return std::move(*returned); }
  }

  /// Returns the steps over the batches of `source` as an input range of `step_type`. The range ends at a stop or at the end of the data.
  /// The source is advanced only after a completed step. If a restored checkpoint has a position for the source, a seekable source first
  /// seeks to this position. A source that is not seekable continues from its current position; if the session continues an earlier run, a
  /// warning is logged. If `source` is a range and not a source, it is wrapped into a source.
  /// @lifetime An lvalue source must outlive the returned range. The session must outlive the returned range, too.
  /// @errors Thrown while the range is read: exceptions of the steps, of the source, of hooks, and of background I/O.
  ///         `failed_precondition_error` ("cannot rewind") if the source cannot follow a recovery (see `training_options::on_unseekable`).
  ///         `failed_precondition_error` also if `on_other_data` is `fail` and the data have changed. `invalid_argument_error` if another
  ///         source of the same name is in use.
  /// @cost One allocation for each call, none for each step.
  template<class Source>
  [[nodiscard]] generator<const step_type&> steps(Source&& source) & {
    if constexpr (!data::batch_source<std::remove_cvref_t<Source>>) {
      return steps(data::source(std::forward<Source>(source)));
    } else if constexpr (detail::can_step_over<Raw, Source>()) {
      return detail::steps_over<step_type, Source>(core(), std::forward<Source>(source));
    } else {
      std::terminate();  // not compiled
    }
  }
  /// Returns the steps of a model that needs no data.
  [[nodiscard]] generator<const step_type&> steps() & { return detail::steps_over<step_type, no_data>(core(), no_data()); }

  /// Does one step with the next batch of `source`. Returns the step, or an empty value when the loop is over: after a stop, or at the end of
  /// the data. For a loop whose body decides when it goes on: `while (auto step = session.next(batches)) {...}`. When a seekable `source` is
  /// passed for the first time, it seeks to its position in the restored checkpoint. From then on, checkpoints contain the position of the
  /// source, until the end of the data or `release(source)`.
  /// @lifetime The source is used during the call only. It is identified by its address: pass the same object to each call.
  /// @errors As in a loop over `steps`.
  template<class Source>
  std::optional<step_type> next(Source& source) {
    static_assert(data::batch_source<Source>,
                  "stepwell: next(source) continues with the same source in each call; give it a source, such as the result of "
                  "data::source(range)");
    if constexpr (!data::batch_source<Source>) {
      std::terminate();  // not compiled
    } else if constexpr (detail::can_step_over<Raw, Source>()) {
      return detail::next_over<step_type>(core(), source);
    } else {
      std::terminate();
    }
  }
  /// Does one step of a model that needs no data.
  std::optional<step_type> next() { return detail::next_over<step_type>(core()); }
  /// Unregisters a source that was passed to `next`, before the end of its data. Later checkpoints contain the position that it has had after
  /// the last call of `next`. Not needed before `steps(source)` and `run_all(source)` with the same source.
  template<data::batch_source Source>
  void release(Source& source) {
    core().sources().release(source);
  }

  /// Does all steps over `source`, as a loop over `steps(source)` without a body does. Returns the last step, the number of steps, the
  /// reason for the end, and the values that hooks measured: `const auto [last, steps, why, values] = session.run_all(batches);`.
  /// @errors As in a loop over `steps`.
  /// @cost As a loop over `steps(source)`, but without the allocation of the range. The last step is moved into the result, not copied.
  template<class Source>
  loop_result<result_type> run_all(Source&& source) {
    if constexpr (!data::batch_source<std::remove_cvref_t<Source>>) {
      return run_all(data::source(std::forward<Source>(source)));
    } else if constexpr (detail::can_step_over<Raw, Source>()) {
      return detail::run_over<step_type, result_type>(core(), source);
    } else {
      std::terminate();  // not compiled
    }
  }
  /// Does all steps of a model that needs no data. A hook or another thread has to stop the session.
  loop_result<result_type> run_all() {
    no_data nothing;
    return detail::run_over<step_type, result_type>(core(), nothing);
  }

  template<class... Source>
  void steps(Source&&...) && {
    static_assert(sizeof...(Source) > 1000, "stepwell: steps() on a temporary session; name the session, it must outlive its steps");
  }

  /// Returns the raw session. Runs made on it directly call no hooks.
  [[nodiscard]] Raw& raw_session() { return core().raw(); }
  /// Returns the object that the session trains, such as a model: `subject()` of the raw session. If the raw session has no `subject()`,
  /// returns the raw session itself.
  [[nodiscard]] auto& subject() { return detail::subject_in_raw(core().raw()); }
  /// Returns the hook of type `Hook`. If the session has several hooks of this type, returns the first of them in the order of calls. May
  /// be called after `close`.
  template<class Hook>
  [[nodiscard]] Hook& hook() {
    return core().hooks().template get<Hook>();
  }

private:
  friend class step_context<monitored_session>;
  template<class, class>
  friend class any_session;

  template<class... Args>
  auto run_within_step(Args&&... args) {
    using run_type = detail::stored_run<all_hooks, core_type, Args&&...>;
    core().throw_if_closed();
    return run_type::result_of(detail::run_within_step<run_type>(core(), std::forward_as_tuple(std::forward<Args>(args)...)));
  }

  [[nodiscard]] core_type& core() const { return static_cast<core_type&>(blocking_session::core()); }
};

template<class Given, class... Hooks>
monitored_session(Given&&, Hooks...) -> monitored_session<typename detail::raw_of<Given>::type, Hooks...>;
template<detail::is_session_setup Setup = training_options, class Given, class... Hooks>
monitored_session(Setup, Given&&, Hooks...) -> monitored_session<typename detail::raw_of<Given>::type, Hooks...>;

/// A `monitored_session` that never recovers. `aborted_error` and `unavailable_error` are thrown to the caller, and the session can still
/// be used after such an error. If a thread of the session has reported a failure, `should_stop` throws it, and so does a loop over `steps`
/// at its end.
/// @see contract SING-2, SING-4
template<raw_session Raw, class... Held>
class singular_monitored_session : public monitored_session<Raw, Held...> {
  using base = monitored_session<Raw, Held...>;

public:
  template<detail::is_session_setup Setup = training_options, detail::origin_of<Raw> Given>
  explicit singular_monitored_session(Setup setup, Given&& given, Held... hooks)
      : base(without_recovery(std::move(setup)), std::forward<Given>(given), std::move(hooks)...) {
    this->throw_failure_of_threads();
  }
  template<detail::origin_of<Raw> Given>
    requires(!std::is_same_v<std::remove_cvref_t<Given>, singular_monitored_session>)
  explicit singular_monitored_session(Given&& given, Held... hooks)
      : singular_monitored_session(session_setup{}, std::forward<Given>(given), std::move(hooks)...) {}

  singular_monitored_session(singular_monitored_session&&) noexcept = default;

  /// Returns the raw session. @errors `failed_precondition_error` if the session is closed. @see contract SING-3
  [[nodiscard]] Raw& raw_session() {
    if (this->is_closed()) { throw failed_precondition_error("raw_session() called on a closed session; it has no raw session"); }
    return base::raw_session();
  }

private:
  static session_setup without_recovery(session_setup setup) {
    setup.options.retry.max_attempts = 0;
    return setup;
  }
};

template<class Given, class... Hooks>
singular_monitored_session(Given&&, Hooks...) -> singular_monitored_session<typename detail::raw_of<Given>::type, Hooks...>;
template<detail::is_session_setup Setup = training_options, class Given, class... Hooks>
singular_monitored_session(Setup, Given&&, Hooks...) -> singular_monitored_session<typename detail::raw_of<Given>::type, Hooks...>;

}  // namespace stepwell
