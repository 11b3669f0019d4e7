// SPDX-License-Identifier: Apache-2.0
//
// A monitored session inside an asynchronous application: the same loop, awaited.
#pragma once

#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/data/range_source.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_driver.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/session/detail/async_run.hpp"
#include "stepwell/session/detail/async_snapshot.hpp"
#include "stepwell/session/detail/async_steps.hpp"
#include "stepwell/session/monitored_session.hpp"
#include "stepwell/session/session_release.hpp"

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

namespace stepwell {

/// A `monitored_session` that is started, stepped and closed by awaiting: what happens in it, in which order, and what a
/// recovery does is the same, call by call (contract MON). Each `async_` function is an Asio initiating function: the last
/// argument is any completion token, signature `void(std::exception_ptr, T)`; without one it is `use_awaitable`.
///
///     co_await session.async_start();
///     for (;;) {
///       auto step = co_await session.async_next(batches);
///       if (!step) { break; }
///     }
///     co_await session.async_close();
///
/// Never `while (co_await ...)`: g++ 12 miscompiles it.
///
/// **Where.** A step runs on the executor of the one who awaits, hooks and all, or where `async_options::steps_on` says.
/// Everything that may wait, for a disk, a thread or another session, runs on a thread of the library's: restoring, hooks'
/// `begin` and `after_create_session`, a due checkpoint's copy, recovering, `end` and closing. Meanwhile the one who awaits
/// is suspended, so that hooks and model are used by one thread at a time. A session takes turns with others on its
/// executor, of about 100 us or one step. At a master a step may wait for others, and so it is on a thread of the library's
/// unless `steps_on` says where.
///
/// **Awaited hooks and models.** A hook's point other than `on_error` may return an `asio::awaitable` of what it would return
/// otherwise, and a model's `step` one of its result. They are awaited in their place, on the executor of the one who awaits,
/// each as a thread of execution of its own; plain hooks stay where they are. `bool wants(context) noexcept` of such a hook
/// says whether it takes part in the coming run: if none does, a step costs what it costs without them. A cancellation
/// reaches a `before_run` and a model's `step`; one that ends by it with `operation_aborted` leaves nothing done, and is no
/// failure. The other points run to their end. A step that is awaited is refused at a master.
///
/// **Cancellation**, terminal, partial and total alike, ends an operation with `operation_aborted`, a
/// `boost::system::system_error`, where nothing is done yet; what is done is delivered. Each function says what that means.
/// Without a slot of its own (`use_awaitable`) an operation hears what the coroutine's cancellation state lets through:
/// Asio's default is terminal only.
///
/// **Leaving.** Destroyed without `async_close`, also by the end of its `io_context`, it *abandons*: no hook is ended, no
/// last checkpoint made, no input or output waited for; who still awaits gets `operation_aborted`. It does wait for a piece
/// of its work that is on another thread at that moment, since that uses model and hooks, and for the session's own threads,
/// which are asked to stop. A hook or a model that is being awaited is not waited for: hooks and batch live until it has
/// ended, and model and source must. What was being written is finished in the background; until then its directory is held,
/// and `release_handle` tells when it no longer is. `async_abandon` and `async_with` leave after an error and wait for that.
///
/// @lifetime Refers to the model, which must outlive it, and so must the executor of `steps_on`. A source must live as long
///           as steps are taken from it, one on another thread at the session's end included. It must outlive what
///           `use_awaitable` gets and whatever `async_steps` returns. Can be moved; the one moved from can only be destroyed.
/// @threads  One thread, or strand, and one operation at a time (`failed_precondition_error` for a second), except
///           `request_stop`, `should_stop` and `stop_reason`.
template<raw_session Raw, class... Held>
class async_monitored_session {
  using core_type = session_impl<Raw, Held...>;
  using async_type = detail::async_impl<core_type>;
  using token_type = boost::asio::use_awaitable_t<>;

public:
  using raw_type = Raw;
  using result_type = typename Raw::result_type;
  using step_type = step_result<result_type>;

  /// Takes the hooks; nothing begins before `async_start`.
  /// @errors `invalid_argument_error` for settings that make no sense.
  template<class Given>
    requires std::is_constructible_v<Raw, Given&&>
  explicit async_monitored_session(async_options how, session_settings settings, Given&& raw, Held... hooks)
      : async_monitored_session(std::in_place, std::move(how), std::move(settings), Raw(std::forward<Given>(raw)),
                                detail::prepare_given<Raw>(settings.keep_initial_state && settings.recover), std::move(hooks)...) {}
  template<class Given>
    requires std::is_constructible_v<Raw, Given&&>
  explicit async_monitored_session(session_settings settings, Given&& raw, Held... hooks)
      : async_monitored_session(async_options(), std::move(settings), std::forward<Given>(raw), std::move(hooks)...) {}

  /// The same with the raw sessions that `creator` makes.
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
  /// Abandons what is not closed.
  ~async_monitored_session() {
    if (async_) { async_->abandon(); }
  }

  /// Begins the hooks; then makes the raw session ready, restored from the newest whole checkpoint, or waits for the chief.
  /// Failures that may pass are tried again as in a recovery. Nothing else can be awaited before, but a close.
  /// @errors What hooks throw; what restoring throws; then the session is of no further use.
  /// @cancel The session is not started and can be: hooks that have begun do not begin again, waiting is begun anew, and
  ///         the wait between two tries goes on. A creation that succeeds in spite of it is a start.
  template<class Token = token_type>
  auto async_start(Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token), [self = async_] { return detail::start_awaited(self); });
  }

  /// One step with the next batch of `source`, hooks around it; empty when the loop is over: after a stop, or at the end of
  /// the data. A recovery is part of it, see `step_result`.
  /// The source goes to where a restored checkpoint left it when it is first given, and its position is saved from then on.
  /// @errors As in a loop over `monitored_session::steps`.
  /// @cancel No batch is lost: a step happens as a whole and is delivered, or not at all. A recovery under way stays due, and
  ///         goes on with the next operation, its waiting included.
  /// @lifetime `source` must live until an empty step, `release(source)`, the close, or the end of the session.
  /// @cost   With `use_awaitable`, no due checkpoint and no other executor for steps: one small frame, which Asio recycles.
  template<data::batch_source Source, class Token = token_type>
  auto async_next(Source& source, Token&& token = Token()) {
    return next(async_->sources().holder_of(*async_, source), std::forward<Token>(token));
  }
  /// The same for a model that needs no data.
  template<class Token = token_type>
    requires(!data::batch_source<Token>)
  auto async_next(Token&& token = Token()) {
    return next(async_->sources().holder_of(*async_, async_->nothing_given), std::forward<Token>(token));
  }

  /// Lets go of a source before its end: its position is kept as it is now. Giving it to `async_steps` does that, too.
  template<data::batch_source Source>
  void release(Source& source) noexcept {
    async_->sources().release(source);
  }

  /// The steps over `source`, one at a time: `auto steps = session.async_steps(batches);`, then `co_await steps.next()` until
  /// that is empty. The registration of the source ends with the object.
  /// @lifetime An lvalue source must outlive the object, which must not outlive the session.
  template<class Source>
  [[nodiscard]] auto async_steps(Source&& source) & {
    if constexpr (data::batch_source<std::remove_cvref_t<Source>>) {
      return detail::async_step_sequence<step_type, async_type, Source>(async_, std::forward<Source>(source));
    } else {
      using wrapped = decltype(data::source(std::forward<Source>(source)));
      return detail::async_step_sequence<step_type, async_type, wrapped>(async_, data::source(std::forward<Source>(source)));
    }
  }

  /// One step with `args`; the last of them may be a completion token. The arguments are those of `monitored_session::run`,
  /// and so is what it gives: what the model's `step` returned, or a tuple of what was fetched.
  /// Rvalues are kept in the frame; lvalues must live until it has ended.
  /// @errors As `monitored_session::run`.
  /// @cancel As `async_next`.
  template<class... Args>
  auto async_run(Args&&... args) {
    return async_run_with<all_hooks>(std::forward<Args>(args)...);
  }
  /// The same with the hooks that `Choice` chooses.
  template<class Choice, class... Args>
  auto async_run_with(Args&&... args) {
    if constexpr (detail::ends_with_token<Raw, Args...>::value) {
      return run_and_complete<Choice>(std::make_index_sequence<sizeof...(Args) - 1>(), std::forward_as_tuple(std::forward<Args>(args)...));
    } else {
      return run<Choice>(token_type(), std::tuple<Args...>(std::forward<Args>(args)...));
    }
  }

  /// Has the hooks that save do so now, whatever their cadence, and waits until that is durable; the step that is saved.
  /// @errors `failed_precondition_error` where no hook saves, or a guard found the state bad; why it could not be saved.
  /// @cancel Heard only before it begins.
  template<class Token = token_type>
  auto async_checkpoint_now(Token&& token = Token()) {
    return whole<std::int64_t>(std::forward<Token>(token), [self = async_] { return detail::save_awaited(self); });
  }

  /// An owned copy of all that a checkpoint would hold now: see `monitored_session::snapshot`. It is made on a thread of the
  /// library's; the next step waits for it.
  /// @errors As there, and `failed_precondition_error` before the start, and while a recovery is due.
  /// @cancel Heard only before it begins.
  template<class Token = token_type>
    requires(!std::is_same_v<std::remove_cvref_t<Token>, snapshot_pool>)
  auto async_snapshot(Token&& token = Token()) {
    return whole<snapshot>(std::forward<Token>(token), [self = async_] { return detail::snapshot_awaited(self, std::nullopt); });
  }
  /// The same into a buffer of `pool`; the wait until one is free is awaited, too. Who holds all buffers of the pool himself
  /// waits for himself: it needs one more than the snapshots that are held at a time.
  /// @cancel Heard until the copy begins.
  template<class Token = token_type>
  auto async_snapshot(const snapshot_pool& pool, Token&& token = Token()) {
    return whole<snapshot>(std::forward<Token>(token), [self = async_, pool] { return detail::snapshot_awaited(self, pool); });
  }

  /// Ends the hooks, makes the last checkpoint, waits for all I/O. The second time it does nothing (D-15).
  /// @errors The first failure of a hook's `end`, of background I/O, or of a thread; everything is closed all the same.
  /// @cancel Heard only before it begins; then the session is as it was, and open. One that has begun runs to its end.
  template<class Token = token_type>
  auto async_close(Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token), [self = async_] { return detail::close_awaited(self); });
  }

  /// Leaves after an error: hooks get `on_error` unless they had it, none is ended, no checkpoint is made. Waits for all I/O
  /// under way, at most for the session's `stop_grace_period`, and releases the directory. After a close it does nothing.
  /// @errors None: what fails is logged.
  /// @cancel Ignored: a cancellation may be the error.
  template<class Token = token_type>
  auto async_abandon(std::exception_ptr failure = nullptr, Token&& token = Token()) {
    return whole<void>(std::forward<Token>(token),
                       [self = async_, failure = std::move(failure)] { return detail::abandon_awaited(self, failure); });
  }

  /// Returns what tells when this session has released its directory, also after its end.
  [[nodiscard]] session_release release_handle() const { return session_release(async_->release()); }

  /// Whether this very exception came out of a hook, where the end of the data is a failure (D-18).
  [[nodiscard]] bool came_from_hook(const std::exception_ptr& failure) const noexcept { return core().came_from_hook(failure); }

  /// Whether the loop should end. @threads Any.
  [[nodiscard]] bool should_stop() const noexcept { return core().should_stop(); }
  /// Asks the loop to end after the step under way. Once asked for, a stop is kept. @threads Any.
  void request_stop(std::string why = "the caller asked to stop") {
    core().control().signals()->request_stop({stop_cause::requested, std::move(why)});
  }
  /// Why the loop ended, as far as it has. @threads Any.
  [[nodiscard]] stepwell::stop_reason stop_reason() const { return core().why(); }

  [[nodiscard]] bool is_started() const noexcept { return async_->is_started(); }
  [[nodiscard]] bool is_closed() const noexcept { return core().is_closed(); }
  /// @errors As `raw_session`.
  [[nodiscard]] std::int64_t global_step() { return raw_session().global_step(); }
  /// Runs made on it call no hook. @errors `failed_precondition_error` before the start, where a creator makes it.
  [[nodiscard]] Raw& raw_session() {
    if (!core().has_raw()) { async_->throw_unless_started(); }
    return core().raw();
  }
  /// The model of a model session. @errors As `raw_session`.
  [[nodiscard]] auto& model()
    requires requires(Raw& raw) { raw.model(); }
  {
    return raw_session().model();
  }
  /// What the session has been through.
  [[nodiscard]] session_metrics metrics() const { return core().metrics(); }
  /// One of the hooks, by type; also before the start and after the close.
  template<class Hook>
  [[nodiscard]] Hook& hook() {
    return core().hooks().template get<Hook>();
  }
  /// The prefix of the checkpoint this session started from, if it did.
  [[nodiscard]] const std::optional<std::string>& restored_from() const noexcept { return core().control().restored_from(); }

private:
  explicit async_monitored_session(std::in_place_t, async_options how, session_settings settings, std::optional<Raw> raw,
                                   detail::raw_maker_ptr<Raw> maker, Held... hooks)
      : async_(std::make_shared<async_type>(std::move(how), std::move(settings), std::move(raw), std::move(maker), std::move(hooks)...)) {}

  [[nodiscard]] core_type& core() const noexcept { return async_->core(); }

  /// An operation that is awaited as a whole; `void` for one that gives nothing.
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
  template<class Choice, class Token, class... Args>
  auto run(Token&& token, std::tuple<Args...> given) {
    using run_type = detail::async_run<Choice, core_type, Args...>;
    return coro::initiate<detail::value_of_run<run_type>>(
        std::forward<Token>(token), async_, [this] { return async_->how().executor(); },
        [self = async_.get(), one = run_type(std::move(given))]() mutable { return detail::run_of(self, std::move(one)); });
  }
  /// A reference to an lvalue, or a value moved in: what was an rvalue is gone when the run begins.
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

}  // namespace stepwell
