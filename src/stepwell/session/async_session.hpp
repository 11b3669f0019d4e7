// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous monitored session: the loop of `monitored_session` inside an application with a Boost.Asio event loop.
#pragma once

#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/async_operations.hpp"
#include "stepwell/session/detail/async_step.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/training_session.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// The result of `async_steps`. `Source` is a reference type if the caller passed an lvalue.
template<class Step, class Async, class Source>
class async_step_sequence {
public:
  async_step_sequence(std::shared_ptr<Async> self, Source&& source)
      : async_(std::move(self)), source_(std::forward<Source>(source)), holder_(async_->core(), async_->sources(), source_) {
    async_->sources().release(source_);
  }
  async_step_sequence(const async_step_sequence&) = delete;
  async_step_sequence& operator=(const async_step_sequence&) = delete;

  /// Does the next step. Returns an empty value when the loop is over; see `async_monitored_session::async_next`.
  /// @lifetime The object must live until the operation has ended.
  template<class Token = boost::asio::use_awaitable_t<>>
  auto next(Token&& token = Token()) {
    return coro::initiate<std::optional<Step>>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_.get(), to = &holder_] { return detail::next_of<Step>(self, to); });
  }

private:
  std::shared_ptr<Async> async_;
  Source source_;
  source_registration<typename Async::core_type, std::remove_reference_t<Source>> holder_;
};

}  // namespace stepwell::detail

namespace stepwell {

/// The argument of an awaited step function.
/// @lifetime Valid during the call of the step function.
template<class Async>
class async_step_context {
public:
  explicit async_step_context(Async& self) noexcept : self_(self) {}
  async_step_context(const async_step_context&) = delete;
  async_step_context& operator=(const async_step_context&) = delete;

  /// Returns the current raw session. Runs made on it directly call no hooks. @see contract STEP-4, D-11
  [[nodiscard]] auto& session() const noexcept { return self_.core().raw(); }
  /// Like `async_run` of the session, as an awaitable. A recovery repeats the whole step function, not this call. @see contract STEP-7
  /// @cancel The result of a completed run is delivered in spite of a cancellation. A cancellation is forwarded to a model or a hook that
  ///    is awaited.
  /// @lifetime Lvalues must live until the run has ended.
  template<class... Args>
  auto async_run_with_hooks(Args&&... args) const {
    using run_type = detail::stored_run<all_hooks, typename Async::core_type, Args...>;
    return detail::run_within_step_awaited(&self_, run_type(std::tuple<Args...>(std::forward<Args>(args)...)));
  }
  /// Ends the step function. @errors Always throws `stop_iteration`, which `async_with` handles as a clean end. @see contract STEP-5
  [[noreturn]] void request_stop() const { throw stop_iteration("the step function asked to stop"); }

private:
  Async& self_;
};

/// An asynchronous `monitored_session`. Its calls of hooks, model and source, their order, and the effect of a recovery are those of a
/// `monitored_session`. Each `async_` function is an Asio initiating function: the last argument is any completion token with the signature
/// `void(std::exception_ptr, T)`; the default is `use_awaitable`.
///
///     co_await session.async_start();
///     for (;;) {
///       auto step = co_await session.async_next(batches);
///       if (!step) { break; }
///     }
///     co_await session.async_close();
///
/// Do not write `while (co_await ...)`: g++ 12 miscompiles it.
///
/// **Execution.** A step and the hooks around it run on the executor of the caller, or on the executor given by `async_options::steps_on`.
/// All work that may block on a disk, a thread or another session runs on a thread of the library: restoring, `begin` and
/// `after_create_session` of the hooks, the copy for a due checkpoint, recovering, `end` of the hooks, and closing. The caller is suspended
/// during this work, so only one thread at a time uses the hooks and the model. If steps run on the executor of the caller, the session
/// yields about every 100 us, or after each step if a step takes longer, so that other work on that executor can run. In a session with a
/// master, a step may block on other sessions. Therefore it runs on a thread of the library unless `steps_on` gives an executor.
///
/// **Awaitable hooks and models.** Every point of a hook except `on_error` may return an `asio::awaitable` of its usual return type, and so
/// may the model's `step`. The session awaits them in the usual order, on the executor of the caller, each as a separate Asio thread of
/// execution. Points of other hooks run on the same executor or thread as in a session without awaitable points. A hook with an awaitable
/// `before_run` or `after_run` may declare `bool wants(context) noexcept`: if it returns false, the hook does not take part in the next
/// run. If no such hook takes part, the step costs no more than in a session without such hooks. A cancellation is forwarded to
/// `before_run` and to the model's `step`. If one of them then ends with `operation_aborted`, the step is not done, and the session does
/// not treat this as a failure. All other points run to their end. In a session with a master, a step fails with `invalid_argument_error`
/// if the model or a hook of the step is awaited.
///
/// **Cancellation.** Terminal, partial and total cancellation have the same effect. An operation that has done nothing yet ends with a
/// `boost::system::system_error` of `operation_aborted`. The result of a completed step, save, snapshot or close is delivered in spite of a
/// cancellation. The `@cancel` line of each function gives the details. An operation without its own cancellation slot (`use_awaitable`)
/// receives the cancellations that the state of the calling coroutine accepts; Asio's default is terminal cancellation only.
///
/// **Destruction.** A session that is destroyed without `async_close`, for example with its `io_context`, is *abandoned*: it does not call
/// `end` of the hooks, makes no last checkpoint, and does not wait for pending I/O. A pending operation ends with `operation_aborted`. If
/// some work of the session runs on another thread at that moment, the destructor blocks until this work has ended, because the work uses
/// the model and the hooks. The destructor also requests the session's threads to stop, and joins them. It does not wait for a hook or a
/// model that is being awaited: the session's shared state keeps the hooks and the batch alive until that coroutine has ended, and the
/// caller must keep the model and the source alive until then. Pending writes are finished in the background. The directory stays locked
/// until these writes are done; `release_handle` returns a handle that reports when the directory is released. `async_abandon` and
/// `async_with` close a session after an error and wait until the directory is released.
///
/// @lifetime The model must outlive the session. The execution context of the executor given to `steps_on` must outlive the session, too. A
/// source must outlive all steps over it, including a step that runs on another thread when the session is destroyed. The session must
/// outlive the awaitables of its functions and the objects that `async_steps` returns. It can be moved; a moved-from session can only be
/// destroyed.
/// @threads One thread or strand, and one operation at a time: a second operation fails with `failed_precondition_error`. `request_stop`,
/// `should_stop` and `stop_reason` may be called on any thread.
/// @see contract MON
template<raw_session Raw, class... Held>
class async_monitored_session {
  using core_type = session_impl<Raw, Held...>;
  using async_type = detail::async_impl<core_type>;
  using token_type = boost::asio::use_awaitable_t<>;

public:
  using raw_type = Raw;
  using result_type = typename Raw::result_type;
  using step_type = step_result<result_type>;

  /// Stores the raw session and the hooks. `async_start` calls the hooks and makes the session ready.
  /// @errors `invalid_argument_error` for invalid settings.
  template<class Given>
    requires std::is_constructible_v<Raw, Given&&>
  explicit async_monitored_session(async_options how, session_settings settings, Given&& raw, Held... hooks)
      : async_monitored_session(std::in_place, std::move(how), std::move(settings), Raw(std::forward<Given>(raw)),
                                detail::prepare_given<Raw>(settings.keep_initial_state && settings.recover), std::move(hooks)...) {}
  template<class Given>
    requires std::is_constructible_v<Raw, Given&&>
  explicit async_monitored_session(session_settings settings, Given&& raw, Held... hooks)
      : async_monitored_session(async_options(), std::move(settings), std::forward<Given>(raw), std::move(hooks)...) {}

  /// Like the first constructor, but `creator` creates the raw session at the start and at each recovery.
  template<session_creator Creator>
    requires std::is_same_v<created_by<Creator>, Raw>
  explicit async_monitored_session(async_options how, session_settings settings, Creator creator, Held... hooks)
      : async_monitored_session(std::in_place, how.creation_waits(how.creation_waits().value_or(true)), std::move(settings), std::nullopt,
                                detail::create_with<Raw>(std::move(creator)), std::move(hooks)...) {}
  template<session_creator Creator>
    requires std::is_same_v<created_by<Creator>, Raw>
  explicit async_monitored_session(session_settings settings, Creator creator, Held... hooks)
      : async_monitored_session(async_options(), std::move(settings), std::move(creator), std::move(hooks)...) {}

  async_monitored_session(async_monitored_session&&) noexcept = default;
  async_monitored_session& operator=(async_monitored_session&&) = delete;
  /// Abandons the session if it is not closed.
  ~async_monitored_session() {
    if (async_) { async_->abandon(); }
  }

  /// Calls `begin` of the hooks. Then creates the raw session and restores it from the newest complete checkpoint, or waits for the chief.
  /// Retries transient failures as in a recovery. Before the session is started, `async_close` and `async_abandon` are the only other
  /// operations that may be awaited.
  /// @errors Exceptions of hooks and of the restore. The session cannot be used afterwards.
  /// @cancel The session is not started, and `async_start` can be called again. In the second call, `begin` is called only for hooks that
  /// have not begun; a wait for the chief starts again with its full time; a wait between two attempts continues with the remaining time.
  /// If the creation succeeds despite the cancellation, the session is started.
  template<class Token = token_type>
  auto async_start(Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token), [self = async_] { return detail::start_awaited(self); });
  }

  /// Does one step with the next batch of `source`, including the calls of hooks and a recovery if necessary; see `step_result`. Returns an
  /// empty value when the loop is over: after a stop, or at the end of the data. When a seekable `source` is passed for the first time, it
  /// seeks to its position in the restored checkpoint. From then on its position is saved.
  /// @errors As in a loop over `monitored_session::steps`.
  /// @cancel No batch is lost: a step is done completely and delivered, or not done at all. A recovery stays pending: the next operation
  /// continues the recovery, including the rest of the wait before the next attempt.
  /// @lifetime `source` must live until an empty value is returned, until `release(source)`, or until the session is closed or destroyed.
  /// @cost With `use_awaitable`, no due checkpoint, and no separate executor for steps: one small coroutine frame, which Asio recycles.
  template<data::batch_source Source, class Token = token_type>
  auto async_next(Source& source, Token&& token = Token()) {
    return next(async_->holder_of(source), std::forward<Token>(token));
  }
  /// Like `async_next(source)`, for a model that needs no data.
  template<class Token = token_type>
    requires(!data::batch_source<Token>)
  auto async_next(Token&& token = Token()) {
    return next(async_->holder_of(async_->nothing_given), std::forward<Token>(token));
  }

  /// Does all steps over `source`, as a loop over `async_next(source)` without a body does. Returns a `loop_result`: the last step, the
  /// number of steps, and the reason for the end.
  /// @errors As `async_next`.
  /// @cancel Ends the loop with `operation_aborted`, either before its next step or in a step, as for `async_next`. The steps done before
  ///    are not undone.
  /// @lifetime As for `async_next`.
  template<data::batch_source Source, class Token = token_type>
  auto async_run_all(Source& source, Token&& token = Token()) {
    return all_of(async_->holder_of(source), std::forward<Token>(token));
  }
  /// Like `async_run_all(source)`, for a model that needs no data. A hook or another thread has to stop the session.
  template<class Token = token_type>
    requires(!data::batch_source<Token>)
  auto async_run_all(Token&& token = Token()) {
    return all_of(async_->holder_of(async_->nothing_given), std::forward<Token>(token));
  }

  /// Unregisters a source before its end. Its current position is kept for later saves. The source is also unregistered if it is passed to
  /// `async_steps`.
  template<data::batch_source Source>
  void release(Source& source) noexcept {
    async_->sources().release(source);
  }

  /// Returns an object that does the steps over `source` one at a time: `auto steps = session.async_steps(batches);`, then `co_await
  /// steps.next()` until the result is empty. The constructor of the object registers the source, and the destructor unregisters it.
  /// @lifetime An lvalue source must outlive the object. The session must outlive the object, too.
  template<class Source>
  [[nodiscard]] auto async_steps(Source&& source) & {
    if constexpr (data::batch_source<std::remove_cvref_t<Source>>) {
      return detail::async_step_sequence<step_type, async_type, Source>(async_, std::forward<Source>(source));
    } else {
      using wrapped = decltype(data::source(std::forward<Source>(source)));
      return detail::async_step_sequence<step_type, async_type, wrapped>(async_, data::source(std::forward<Source>(source)));
    }
  }

  /// Does one step with `args`; the last argument may be a completion token. The arguments and the result are those of
  /// `monitored_session::run`: the result of the model's `step`, or a tuple of the fetched values. Rvalues are stored in the coroutine
  /// frame.
  /// @errors As `monitored_session::run`.
  /// @cancel As `async_next`.
  /// @lifetime Lvalues must live until the operation has ended.
  template<class... Args>
  auto async_run(Args&&... args) {
    return async_run_with<all_hooks>(std::forward<Args>(args)...);
  }
  /// Like `async_run`, but only with the hooks that `Choice` selects.
  template<class Choice, class... Args>
  auto async_run_with(Args&&... args) {
    if constexpr (detail::ends_with_token<Raw, Args...>::value) {
      return run_and_complete<Choice>(std::make_index_sequence<sizeof...(Args) - 1>(), std::forward_as_tuple(std::forward<Args>(args)...));
    } else {
      return run<Choice>(token_type(), std::tuple<Args...>(std::forward<Args>(args)...));
    }
  }

  /// Awaits `step_fn(context)` and returns its result; see `async_step_context`. `step_fn` is a coroutine function that takes the context by
  /// reference and returns an `asio::awaitable`. After a transient failure, including one of its own code, the session is recovered and the
  /// whole function is called again. It runs on the executor of the caller.
  /// @errors Exceptions of `step_fn`.
  /// @cancel Forwarded to `step_fn`. If `step_fn` then ends with `operation_aborted`, the session does not treat this as a failure. Runs
  ///    that `step_fn` has completed are not undone.
  /// @lifetime `step_fn` must outlive the operation.
  /// @see contract STEP-6
  template<class StepFn, class Token = token_type>
  auto async_run_step_fn(StepFn& step_fn, Token&& token = Token()) {
    using context_type = async_step_context<async_type>;
    static_assert(std::is_invocable_v<StepFn&, context_type&>,
                  "stepwell: `step_fn` may either have one context argument, taken by reference, or not be called");
    using result = coro::once_awaited_t<std::invoke_result_t<StepFn&, context_type&>>;
    return coro::initiate<result>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_, fn = &step_fn] { return detail::step_fn_result<result, context_type>(self, *fn); });
  }

  /// Requests all hooks that save to save now, regardless of their cadence, and waits until the checkpoint is durable. Returns the step
  /// that is saved.
  /// @errors `failed_precondition_error` before the start, after the close, while a recovery is pending, if no hook saves, or if a guard
  /// rejected the state. Failures of the save.
  /// @cancel Effective only before the save begins.
  template<class Token = token_type>
  auto async_checkpoint_now(Token&& token = Token()) {
    return whole<std::int64_t>(std::forward<Token>(token), [self = async_] { return detail::save_awaited(self); });
  }

  /// Returns an owned copy of the state that a checkpoint would contain now; see `monitored_session::snapshot`. The copy is made on a
  /// thread of the library. The next step waits until the copy is complete.
  /// @errors As `monitored_session::snapshot`; also `failed_precondition_error` before the start, and while a recovery is pending.
  /// @cancel Effective only before the copy begins.
  template<class Token = token_type>
    requires(!std::is_same_v<std::remove_cvref_t<Token>, snapshot_pool>)
  auto async_snapshot(Token&& token = Token()) {
    return whole<snapshot>(std::forward<Token>(token), [self = async_] { return detail::snapshot_awaited(self, std::nullopt); });
  }
  /// Like `async_snapshot()`, but copies into a buffer of `pool`. If no buffer is free, suspends until one is. Deadlocks if the caller
  /// already holds every buffer: the pool needs one more buffer than the caller holds snapshots at a time.
  /// @cancel Effective until the copy begins.
  template<class Token = token_type>
  auto async_snapshot(const snapshot_pool& pool, Token&& token = Token()) {
    return whole<snapshot>(std::forward<Token>(token), [self = async_, pool] { return detail::snapshot_awaited(self, pool); });
  }

  /// Calls `end` of the hooks, makes the last checkpoint, and waits for all I/O. Does nothing if the session is closed already.
  /// @errors The first failure of a hook's `end`, of background I/O, or of a thread. The session is closed nevertheless.
  /// @cancel Effective only before the close begins: the session then stays open. A close that has begun runs to its end.
  /// @see D-15
  template<class Token = token_type>
  auto async_close(Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token), [self = async_] { return detail::close_awaited(self); });
  }

  /// Closes the session after an error. Calls `on_error` of the hooks unless they were notified of this error already. Does not call `end`
  /// of the hooks and makes no checkpoint. Waits for all pending I/O, at most for `stop_grace_period` of the settings, and releases the
  /// directory. Does nothing if the session is closed already.
  /// @errors Throws nothing. Failures are logged.
  /// @cancel Ignored, because the error may itself be a cancellation.
  template<class Token = token_type>
  auto async_abandon(std::exception_ptr failure = nullptr, Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token),
                       [self = async_, failure = std::move(failure)] { return detail::abandon_awaited(self, failure); });
  }

  /// Returns a handle that reports when this session has released its directory. It may be used after the end of the session.
  [[nodiscard]] session_release release_handle() const { return session_release(async_->release()); }

  /// Returns true if this exception object was thrown by a hook or by the session's own work. Returns false if it was thrown by the step.
  /// In a hook, `out_of_range_error` is a failure, not the end of the data.
  /// @see D-18
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const noexcept { return core().came_from_hook(failure); }

  /// Returns true if the loop should end. @threads Any.
  [[nodiscard]] bool should_stop() const noexcept { return core().should_stop(); }
  /// Requests the loop to end after the current step. The request cannot be withdrawn. @threads Any.
  void request_stop(std::string why = "the caller asked to stop") {
    core().control().signals()->request_stop({stop_cause::requested, std::move(why)});
  }
  /// Returns the reason why the loop ended; its cause is `none` if the loop has not ended. @threads Any.
  [[nodiscard]] stepwell::stop_reason stop_reason() const { return core().why(); }

  [[nodiscard]] bool is_started() const noexcept { return async_->is_started(); }
  [[nodiscard]] bool is_closed() const noexcept { return core().is_closed(); }
  /// @errors As `raw_session`.
  [[nodiscard]] std::int64_t global_step() { return raw_session().global_step(); }
  /// Returns the raw session. Runs made on it directly call no hooks.
  /// @errors `failed_precondition_error` if a creator creates the raw session and has not done so yet.
  [[nodiscard]] Raw& raw_session() {
    if (!core().has_raw()) { async_->throw_unless_started(); }
    return core().raw();
  }
  /// Returns the model of a model session. @errors As `raw_session`.
  [[nodiscard]] auto& model()
    requires requires(Raw& raw) { raw.model(); }
  {
    return raw_session().model();
  }
  /// Returns the metrics of the session, such as the number of recoveries.
  [[nodiscard]] session_metrics metrics() const { return core().metrics(); }
  /// Returns the hook of type `Hook`. May be called before the start and after the close.
  template<class Hook>
  [[nodiscard]] Hook& hook() {
    return core().hooks().template get<Hook>();
  }
  /// Returns the prefix of the checkpoint that was restored most recently: at the start, or in the last recovery. Empty if none was
  /// restored.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return core().control().restored_from(); }

private:
  explicit async_monitored_session(std::in_place_t, async_options how, session_settings settings, std::optional<Raw> raw,
                                   detail::raw_maker<Raw> maker, Held... hooks)
      : async_(std::make_shared<async_type>(std::move(how), std::move(settings), std::move(raw), std::move(maker), std::move(hooks)...)) {}

  [[nodiscard]] core_type& core() const noexcept { return async_->core(); }

  /// Starts an operation with result `T`, or without a result if `T` is `void`. Asio's own check for cancellation is switched off in it.
  template<class T, class Token, class Make>
  auto whole(Token&& token, Make make) {
    return coro::initiate<T>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [make = std::move(make)] { return detail::defer_cancellation<T>(make); });
  }
  template<class Holder, class Token>
  auto next(Holder& holder, Token&& token) {
    return coro::initiate<std::optional<step_type>>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_.get(), to = &holder] { return detail::next_of<step_type>(self, to); });
  }
  template<class Holder, class Token>
  auto all_of(Holder& holder, Token&& token) {
    return coro::initiate<loop_result<result_type>>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_.get(), to = &holder] { return detail::run_all_of<step_type, result_type>(self, to); });
  }
  template<class Choice, class Token, class... Args>
  auto run(Token&& token, std::tuple<Args...> given) {
    using run_type = detail::stored_run<Choice, core_type, Args...>;
    return coro::initiate<detail::result_of_run<run_type>>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_.get(), one = run_type(std::move(given))]() mutable { return detail::run_of(self, std::move(one)); });
  }
  /// The type in which a run stores an argument: a reference for an lvalue, otherwise a value, because an rvalue no longer exists when the
  /// run begins.
  template<class Arg>
  using kept_as = std::conditional_t<std::is_lvalue_reference_v<Arg>, Arg, std::remove_reference_t<Arg>>;
  template<class Choice, std::size_t... I, class Given>
  auto run_and_complete(std::index_sequence<I...>, Given&& given) {
    return run<Choice>(
        std::get<sizeof...(I)>(std::forward<Given>(given)),
        std::tuple<kept_as<std::tuple_element_t<I, std::remove_cvref_t<Given>>>...>(std::get<I>(std::forward<Given>(given))...));
  }

  std::shared_ptr<async_type> async_;
};

template<session_creator Creator, class... Hooks>
async_monitored_session(session_settings, Creator, Hooks...) -> async_monitored_session<created_by<Creator>, Hooks...>;
template<session_creator Creator, class... Hooks>
async_monitored_session(async_options, session_settings, Creator, Hooks...) -> async_monitored_session<created_by<Creator>, Hooks...>;
template<class Model, class... Hooks>
  requires requires { typename raw_session_over<Model>::type; }
async_monitored_session(session_settings, Model&, Hooks...) -> async_monitored_session<raw_session_over_t<Model>, Hooks...>;
template<class Model, class... Hooks>
  requires requires { typename raw_session_over<Model>::type; }
async_monitored_session(async_options, session_settings, Model&, Hooks...) -> async_monitored_session<raw_session_over_t<Model>, Hooks...>;

/// Awaits `body(session)`, then closes the session, as `with` does. An `out_of_range_error` or `stop_iteration` thrown by the body is the
/// end of the loop, unless a hook threw it. After any other exception, including a cancellation, the session is abandoned, and the
/// exception is rethrown when the directory is released. (If the start of a session failed, its directory may stay locked until the session
/// is destroyed.) Give `body` a name, as in the example: a bug of g++ 12 destroys a lambda with captures or an aggregate twice if it is
/// created inside an awaited expression.
///
///     auto train = [&](auto& session) -> asio::awaitable<void> { ... };  // a named object, see below
///     co_await async_with(session, train);
///
/// @errors Exceptions of the body that do not end the loop normally, and those of `async_close`.
/// @cancel Forwarded to the body. Closing and abandoning run to their end.
/// @lifetime `session` and `body` must outlive the operation.
/// @see D-18
template<class Session, class Body>
boost::asio::awaitable<void> async_with(Session& session, Body& body) {
  std::exception_ptr failure;
  try {
    co_await body(session);
  } catch (...) { failure = std::current_exception(); }
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);  // otherwise a cancellation would throw here, before the close
  const bool is_error = failure && !detail::is_end_of_loop(session, failure);
  std::exception_ptr of_close;
  const auto here = co_await boost::asio::this_coro::executor;
  auto deaf = boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(), boost::asio::use_awaitable);
  try {
    if (is_error) {
      co_await boost::asio::co_spawn(here, session.async_abandon(failure), deaf);
    } else {
      co_await boost::asio::co_spawn(here, session.async_close(), deaf);
    }
  } catch (...) { of_close = std::current_exception(); }
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  if (is_error) { std::rethrow_exception(failure); }
  if (of_close) { std::rethrow_exception(of_close); }
}

}  // namespace stepwell
