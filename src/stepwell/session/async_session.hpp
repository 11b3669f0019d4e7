// SPDX-License-Identifier: Apache-2.0
//
// The asynchronous monitored session: the loop of `monitored_session` inside an application with a Boost.Asio event loop.
#pragma once

#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/data/source.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/common_session.hpp"
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
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// The object that `async_steps` returns. `Source` is a reference type if the caller passed an lvalue.
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
  /// @lifetime This object must live until the operation has ended.
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

/// The argument of an awaited step function; see `async_monitored_session::async_run_step_fn`.
/// @lifetime Valid during the call of the step function.
template<class Async>
class async_step_context {
public:
  explicit async_step_context(Async& self) noexcept : self_(self) {}
  async_step_context(const async_step_context&) = delete;
  async_step_context& operator=(const async_step_context&) = delete;

  /// Returns the current raw session. Runs made on it directly call no hooks. @see contract STEP-4, D-11
  [[nodiscard]] auto& session() const noexcept { return self_.core().raw(); }
  /// Does one step with hooks, like `async_run` of the session. Takes no completion token; returns an awaitable. A recovery repeats the
  /// whole step function, not only this call. @see contract STEP-7
  /// @cancel The result of a completed run is delivered in spite of a cancellation. A cancellation is forwarded to the model's `step` if that
  ///    is awaited.
  /// @lifetime Lvalues must live until the run has ended.
  template<class... Args>
  auto async_run_with_hooks(Args&&... args) const {
    using run_type = detail::stored_run<all_hooks, typename Async::core_type, Args...>;
    return detail::run_within_step_awaited(&self_, run_type(std::tuple<Args...>(std::forward<Args>(args)...)));
  }
  /// Ends the step function and the loop. @errors Always throws `stop_iteration`, which `async_with` handles as the normal end of the loop.
  /// @see contract STEP-5
  [[noreturn]] void request_stop() const { throw stop_iteration("the step function asked to stop"); }

private:
  Async& self_;
};

/// An asynchronous `monitored_session`. It calls hooks, model and source in the same order as a `monitored_session`, and a recovery has the
/// same effect. Each `async_` function, except `async_steps`, is an Asio initiating function: the last argument is any completion token for
/// the signature `void(std::exception_ptr, T)`, where `T` is the result (`void(std::exception_ptr)` if there is no result). The default is
/// `use_awaitable`.
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
/// All work that may block on a disk, a thread or another session runs on a thread of stepwell: restoring, `begin` and
/// `after_create_session` of the hooks, the copy for a due checkpoint, recovering, `end` of the hooks, and closing. The caller is suspended
/// during this work, so only one thread at a time uses the hooks and the model. If steps run on the executor of the caller, the session
/// yields about every 100 us, so that other work on that executor can run. If a step takes longer than 100 us, the session yields after
/// each step. In a session with a master or a group (`training_options`), a step may block until other sessions have done theirs. Such a step
/// therefore runs on a thread of stepwell, unless `steps_on` gives an executor.
///
/// **Awaitable models.** The model's `step` may return an `asio::awaitable` of its usual return type. The session awaits it on the executor
/// of the caller, as a separate Asio thread of execution. The hooks of this step run on the same executor or thread as those of other steps;
/// hooks are never awaited. A cancellation is forwarded to the awaited `step`. If it then ends with `operation_aborted`, the step is not
/// done, and the session does not treat this as a failure. In a session with a master, an awaited step fails with `invalid_argument_error`.
///
/// **Cancellation.** Terminal, partial and total cancellation have the same effect. An operation that has done nothing yet ends with a
/// `boost::system::system_error` of `operation_aborted`. The result of a completed step, save, snapshot or close is delivered in spite of a
/// cancellation. The `@cancel` line of each function gives the details. An operation with the token `use_awaitable` has no cancellation
/// slot of its own. It receives the cancellations that the cancellation state of the calling coroutine accepts. By default, Asio accepts
/// only terminal cancellation.
///
/// **Destruction.** A session that is destroyed without `async_close`, for example with its `io_context`, is *abandoned*: it does not call
/// `end` of the hooks, makes no last checkpoint, and does not wait for pending I/O. A pending operation ends with `operation_aborted`. If
/// some work of the session runs on another thread at that moment, the destructor blocks until this work has ended, because the work uses
/// the model and the hooks. The destructor also requests the session's threads to stop, and joins them. The destructor does not wait for an
/// awaited `step` that has not ended. Internal state, which outlives the session, keeps the hooks and the batch alive until that coroutine
/// has ended. The caller must keep the model and the source alive until then. Pending writes are finished in the background,
/// and the directory of the checkpoints stays locked until they are done. `release_handle` returns a handle that reports when the directory
/// is released. To end a session after an error and to wait until the directory is released, use `async_abandon` or `async_with`.
///
/// @lifetime The model must outlive the session. For the execution context of an executor, see `async_options::steps_on`. A source must
/// outlive all steps over it, including a step that runs on another thread when the session is destroyed. The session must outlive the
/// awaitables of its functions and the objects that `async_steps` returns. A session can be moved. Each function of a
/// moved-from session throws `failed_precondition_error` at once, except `release` and `came_from_hook`, which do nothing.
/// @threads The functions may be called on one thread or strand. One operation may be in flight: a second operation fails with
/// `failed_precondition_error`. `request_stop`, `should_stop`, `stop_reason`, `is_closed`, `metrics` and `watched` may be called on any
/// thread.
/// @see contract MON
template<raw_session Raw, class... Held>
class async_monitored_session : public common_session {
  using core_type = session_impl<Raw, Held...>;
  using async_type = detail::async_impl<core_type>;
  using token_type = boost::asio::use_awaitable_t<>;

public:
  using raw_type = Raw;
  using result_type = typename Raw::result_type;
  using step_type = step_result<result_type>;

  /// Stores the raw session (for example the session over a model, which executes the steps) and the hooks. Later, `async_start` calls
  /// `begin` of the hooks and restores the raw session. `setup` is either `training_options` or a `session_setup`. `given` is the raw
  /// session, the model, or a creator, which creates the raw session in `async_start` and in each recovery.
  /// @errors `invalid_argument_error` for invalid options. Also if an option of a default hook is set, because this session has no default
  /// hooks.
  template<detail::is_session_setup Setup = training_options, detail::origin_of<Raw> Given>
  explicit async_monitored_session(async_options how, Setup setup, Given&& given, Held... hooks)
      : async_monitored_session(std::make_shared<async_type>(
            how.creation_waits(how.creation_waits().value_or(detail::creator_of<Given, Raw>)), std::move(setup),
            detail::make_origin<Raw>(std::forward<Given>(given), detail::initial_state_for(setup)), std::move(hooks)...)) {}
  template<detail::is_session_setup Setup = training_options, detail::origin_of<Raw> Given>
  explicit async_monitored_session(Setup setup, Given&& given, Held... hooks)
      : async_monitored_session(async_options(), std::move(setup), std::forward<Given>(given), std::move(hooks)...) {}

  async_monitored_session(async_monitored_session&&) noexcept = default;
  async_monitored_session& operator=(async_monitored_session&&) = delete;
  /// Abandons the session if it is not closed; see "Destruction" above. In a child process made by `fork`, it does nothing: the session is
  /// that of the parent.
  ~async_monitored_session() {
    if (!async_) { return; }
    if (!async_->core().owner().is_this_process()) {
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): a child without memory for a pointer ends
      static_cast<void>(new auto(std::move(async_)));  // the threads, the locks and the files are those of the parent
      return;
    }
    async_->abandon();
  }

  /// Calls `begin` of the hooks. Then a chief restores the raw session from the newest complete checkpoint, or initialises it if there is
  /// no checkpoint; a worker waits for its chief. Then calls `after_create_session` of the hooks. Retries transient failures as in a
  /// recovery. Before the session is started, no operations except `async_start`, `async_close` and `async_abandon` are allowed.
  /// @errors Exceptions of hooks and of the restore. After such an exception, the session can only be closed, abandoned or destroyed.
  /// @cancel The session is not started, and `async_start` can be called again. The second call does not call `begin` again if the first
  /// call has called `begin` of all hooks. In the second call, a wait for the chief has its full time again, and a wait between two
  /// attempts has the time that remained. If the creation succeeds despite the cancellation, the session is started.
  template<class Token = token_type>
  auto async_start(Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token), [self = shared()] { return detail::start_awaited(self); });
  }

  /// Does one step with the next batch of `source`, including the calls of hooks, and a recovery if necessary. Returns an optional
  /// `step_result`, which is empty when the loop is over: after a stop, or at the end of the data. When a seekable `source` is passed for
  /// the first time, it seeks to its position in the restored checkpoint. From then on, checkpoints contain the position of the source.
  /// @errors As in a loop over `monitored_session::steps`.
  /// @cancel No batch is lost: a step is done completely and delivered, or not done at all. If a recovery is cancelled, the next operation
  /// continues the recovery, after the rest of the wait before the next attempt.
  /// @lifetime `source` must live until an empty value is returned, until `release(source)`, or until the session is closed or destroyed.
  /// @cost With `use_awaitable`, no due checkpoint, and no separate executor for steps: one small coroutine frame, which Asio recycles.
  template<data::batch_source Source, class Token = token_type>
  auto async_next(Source& source, Token&& token = Token()) {
    if constexpr (detail::can_step_over<Raw, Source>()) { return next(self().holder_of(source), std::forward<Token>(token)); }
  }
  /// Like `async_next(source)`, for a model that needs no data.
  template<class Token = token_type>
    requires(!data::batch_source<Token>)
  auto async_next(Token&& token = Token()) {
    static_assert(!std::ranges::input_range<Token>,
                  "stepwell: a source continues over several calls; give async_next and async_run_all "
                  "the result of data::source(range), not the range");
    return next(self().holder_of(self().nothing_given), std::forward<Token>(token));
  }

  /// Does all steps over `source`, like a loop with an empty body that awaits `async_next(source)`. Returns a `loop_result`: the last step,
  /// the number of steps, the reason for the end, and the values that hooks measured.
  /// @errors As `async_next`.
  /// @cancel The operation ends with `operation_aborted`, before the next step or in a step, in the same way as `async_next`. The completed
  ///    steps are not undone.
  /// @lifetime As for `async_next`.
  template<data::batch_source Source, class Token = token_type>
  auto async_run_all(Source& source, Token&& token = Token()) {
    if constexpr (detail::can_step_over<Raw, Source>()) { return all_of(self().holder_of(source), std::forward<Token>(token)); }
  }
  /// Like `async_run_all(source)`, for a model that needs no data. A hook or another thread has to stop the session.
  template<class Token = token_type>
    requires(!data::batch_source<Token>)
  auto async_run_all(Token&& token = Token()) {
    static_assert(!std::ranges::input_range<Token>,
                  "stepwell: a source continues over several calls; give async_next and async_run_all "
                  "the result of data::source(range), not the range");
    return all_of(self().holder_of(self().nothing_given), std::forward<Token>(token));
  }

  /// Unregisters a source that was passed to `async_next` or `async_run_all`, before the end of its data. Later checkpoints contain the
  /// position that the source has now. If the source is passed to `async_steps`, it is unregistered in the same way, and registered again
  /// by the first step of `async_steps`.
  template<data::batch_source Source>
  void release(Source& source) noexcept {
    if (async_) { async_->sources().release(source); }
  }

  /// Returns an object that does the steps over `source` one at a time: `auto steps = session.async_steps(batches);`, then `co_await
  /// steps.next()` until the result is empty. The first step registers the source with the session. The end of the loop or the destructor
  /// of the object unregisters it.
  /// @lifetime An lvalue source must outlive the object. The session must outlive the object, too.
  template<class Source>
  [[nodiscard]] auto async_steps(Source&& source) & {
    if constexpr (!data::batch_source<std::remove_cvref_t<Source>>) {
      return async_steps(data::source(std::forward<Source>(source)));
    } else if constexpr (detail::can_step_over<Raw, Source>()) {
      return detail::async_step_sequence<step_type, async_type, Source>(shared(), std::forward<Source>(source));
    }
  }

  /// Does one step with `args`, like `monitored_session::run`. The last argument may be a completion token. Returns the result of the
  /// model's `step`, or a tuple of values if `args` contains `fetch(...)`. Rvalues are moved into the coroutine frame.
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
    } else if constexpr (detail::can_run<Raw, Args...>()) {
      return run<Choice>(token_type(), std::tuple<Args...>(std::forward<Args>(args)...));
    }
  }

  /// Awaits `step_fn(context)` and returns its result. `step_fn` is a coroutine function that takes an `async_step_context` by reference
  /// and returns an `asio::awaitable`. It runs on the executor of the caller. After a transient failure, even one thrown by the code of
  /// `step_fn`, the session recovers and calls the whole function again.
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
        [self = shared(), fn = &step_fn] { return detail::step_fn_result<result, context_type>(self, *fn); });
  }

  /// Makes a checkpoint now, regardless of periods: all hooks that save are requested to save. Waits until the checkpoint is durable.
  /// Returns the step that was saved.
  /// @errors `failed_precondition_error` in these cases: the session is not started, is closed, or has a recovery that is not finished; a
  /// hook has requested a stop; no hook saves; or a hook has rejected the state as bad. Failures of the save.
  /// @cancel Effective only before the save begins.
  template<class Token = token_type>
  auto async_checkpoint_now(Token&& token = Token()) {
    return whole<std::int64_t>(std::forward<Token>(token), [self = shared()] { return detail::save_awaited(self); });
  }

  /// Returns a copy of the state that a checkpoint would contain now; see `monitored_session::snapshot`. The copy is made on a thread of
  /// stepwell. The operation completes when the copy is complete.
  /// @errors As `monitored_session::snapshot`; also `failed_precondition_error` if the session is not started, or if a recovery is not
  /// finished.
  /// @cancel Effective only before the copy begins.
  template<class Token = token_type>
    requires(!std::is_same_v<std::remove_cvref_t<Token>, snapshot_pool>)
  auto async_snapshot(Token&& token = Token()) {
    return whole<snapshot>(std::forward<Token>(token), [self = shared()] { return detail::snapshot_awaited(self, std::nullopt); });
  }
  /// Like `async_snapshot()`, but copies into a buffer of `pool`. If no buffer is free, suspends until a buffer becomes free. If the caller
  /// itself holds snapshots in all buffers of the pool, the operation does not complete until it is cancelled. If the caller holds up to n
  /// snapshots while it waits for the next snapshot, the pool needs at least n + 1 buffers.
  /// @cancel Effective until the copy begins.
  template<class Token = token_type>
  auto async_snapshot(const snapshot_pool& pool, Token&& token = Token()) {
    return whole<snapshot>(std::forward<Token>(token), [self = shared(), pool] { return detail::snapshot_awaited(self, pool); });
  }

  /// Calls `end` of the hooks, makes the last checkpoint, and waits for all I/O. Does nothing if the session is closed already. If the
  /// session was never started successfully, stops its threads without calling hooks and without a checkpoint.
  /// @errors The first failure of a hook's `end`, of background I/O, or of a thread. The session is closed nevertheless.
  ///   `failed_precondition_error` in a child process made by `fork`, in which nothing is closed.
  /// @cancel Has an effect only before the close begins. The session then stays open. A close that has begun runs to its end.
  /// @see D-15
  template<class Token = token_type>
  auto async_close(Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token), [self = shared()] { return detail::close_awaited(self); });
  }

  /// Closes the session after the error `failure`. Calls `on_error` of the hooks, unless it was already called for this error. Does not
  /// call `end` of the hooks and makes no checkpoint. Waits for all pending I/O, at most for `stop_grace_period_secs`, and
  /// releases the directory of the checkpoints. Does nothing if the session is closed already. If the session was never started
  /// successfully, calls no hooks.
  /// @errors Failures are logged and not thrown.
  /// @cancel Ignored, because `failure` may itself be the result of a cancellation.
  template<class Token = token_type>
  auto async_abandon(std::exception_ptr failure = nullptr, Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token),
                       [self = shared(), failure = std::move(failure)] { return detail::abandon_awaited(self, failure); });
  }

  /// Returns a handle that reports when this session has released the directory of its checkpoints. The handle may be used after the
  /// session is destroyed.
  [[nodiscard]] session_release release_handle() const { return session_release(self().release()); }

  [[nodiscard]] bool is_started() const { return self().is_started(); }
  /// Returns the raw session. Runs made on it directly call no hooks.
  /// @errors `failed_precondition_error` if the session has a creator that has not created the raw session yet.
  [[nodiscard]] Raw& raw_session() {
    if (!core().has_raw()) { self().throw_unless_started(); }
    return core().raw();
  }
  /// Like `monitored_session::subject`. @errors As `raw_session`.
  [[nodiscard]] auto& subject() { return detail::subject_in_raw(raw_session()); }
  /// Returns the hook of type `Hook`. May also be called before the start and after the close.
  template<class Hook>
  [[nodiscard]] Hook& hook() {
    return core().hooks().template get<Hook>();
  }

private:
  explicit async_monitored_session(std::shared_ptr<async_type> async) : common_session(async->core()), async_(std::move(async)) {}

  /// @errors `failed_precondition_error` if this session was moved from.
  [[nodiscard]] const std::shared_ptr<async_type>& shared() const {
    if (!async_) [[unlikely]] { detail::throw_moved_from(); }
    return async_;
  }
  [[nodiscard]] async_type& self() const { return *shared(); }
  [[nodiscard]] core_type& core() const { return self().core(); }

  /// Starts the operation `make()`, which has the result `T`, or none if `T` is `void`. In the operation, Asio's own check for cancellation
  /// is off.
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
        [self = &self(), one = run_type(std::move(given))]() mutable { return detail::run_of(self, std::move(one)); });
  }
  /// The type in which a run stores an argument. For an lvalue it is a reference. For an rvalue it is a value, because the rvalue no longer
  /// exists when the run begins.
  template<class Arg>
  using kept_as = std::conditional_t<std::is_lvalue_reference_v<Arg>, Arg, std::remove_reference_t<Arg>>;
  template<class Choice, std::size_t... I, class Given>
  auto run_and_complete(std::index_sequence<I...>, Given&& given) {
    if constexpr (detail::can_run<Raw, std::tuple_element_t<I, std::remove_cvref_t<Given>>...>()) {
      return run<Choice>(
          std::get<sizeof...(I)>(std::forward<Given>(given)),
          std::tuple<kept_as<std::tuple_element_t<I, std::remove_cvref_t<Given>>>...>(std::get<I>(std::forward<Given>(given))...));
    }
  }

  std::shared_ptr<async_type> async_;
};

template<detail::is_session_setup Setup = training_options, class Given, class... Hooks>
async_monitored_session(Setup, Given&&, Hooks...) -> async_monitored_session<typename detail::raw_of<Given>::type, Hooks...>;
template<detail::is_session_setup Setup = training_options, class Given, class... Hooks>
async_monitored_session(async_options, Setup, Given&&, Hooks...) -> async_monitored_session<typename detail::raw_of<Given>::type, Hooks...>;

/// Awaits `body(session)`, then closes the session, like the blocking `with`. An `out_of_range_error` or `stop_iteration` that leaves the
/// body is the normal end of the loop, unless a hook threw it: the session is closed, and nothing is thrown. After any other exception,
/// including that of a cancellation, the session is abandoned with `async_abandon`, and then the exception is rethrown. The directory is
/// then released. But if the start of the session failed, the directory may stay locked until the session is destroyed.
///
///     auto train = [&](auto& session) -> asio::awaitable<void> { ... };  // a named object, see below
///     co_await async_with(session, train);
///
/// Give `body` a name, as in the example. If a lambda with captures, or an aggregate, is created inside an awaited expression, g++ 12
/// destroys it twice (a bug of this compiler).
/// @errors Exceptions of the body that do not end the loop normally, and those of `async_close`.
/// @cancel Forwarded to the body. `async_close` and `async_abandon` are not cancelled.
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
