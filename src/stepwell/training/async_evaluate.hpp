// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous evaluation of a snapshot while training continues.
#pragma once

#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/summary/writer.hpp"
#include "stepwell/training/detail/evaluation_work.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <concepts>
#include <memory>
#include <stop_token>
#include <utility>

namespace stepwell {

/// Options of `async_evaluate`. This is a class with setters and not an aggregate, because a bug of g++ 12 destroys an aggregate twice if
/// it is created inside an awaited expression. An `async_evaluate_options` object may be created there:
///
///     async_evaluate_options().evaluates_on(pool.get_executor()).writes_to(events)
class async_evaluate_options {
public:
  using executor_type = async_options::executor_type;

  async_evaluate_options() = default;

  /// Sets the executor on which the evaluation runs. By default, each evaluation runs on a separate thread.
  /// @lifetime If the execution context of `executor` ends before the evaluation, it must destroy the posted functions that it has not run.
  async_evaluate_options& evaluates_on(executor_type executor) {
    evaluates_on_ = std::move(executor);
    return *this;
  }
  /// Sets the executor for operations whose completion handler has no executor, such as plain callbacks; see `async_options::runs_on`.
  async_evaluate_options& runs_on(executor_type executor) {
    completions_.runs_on(std::move(executor));
    return *this;
  }
  /// Sets a writer of event files. The metrics that the evaluation returns are written to it, with the step of the snapshot. The return
  /// type of the evaluation must satisfy `summary::names_metrics`.
  async_evaluate_options& writes_to(std::shared_ptr<summary::writer> events) {
    events_ = std::move(events);
    return *this;
  }
  /// Sets the options with which the snapshot is restored into a model: for example, `{.names = ema_names(model.variables())}` restores the
  /// averages of an `ema_hook`. Not used by an evaluation without a model.
  async_evaluate_options& restores(restore_options how) {
    restore_ = std::move(how);
    return *this;
  }

  /// Returns the executor on which the evaluation runs. If the executor is empty, the evaluation runs on a separate thread.
  [[nodiscard]] const executor_type& evaluates_on() const noexcept { return evaluates_on_; }
  [[nodiscard]] executor_type executor() const { return completions_.executor(); }
  [[nodiscard]] const std::shared_ptr<summary::writer>& events() const noexcept { return events_; }
  [[nodiscard]] const restore_options& restore() const noexcept { return restore_; }

private:
  executor_type evaluates_on_;
  async_options completions_;
  std::shared_ptr<summary::writer> events_;
  restore_options restore_;
};

namespace detail {

/// Runs `work` and returns its result. Runs it on `executor` or, if `executor` is empty, on a separate thread.
template<class Work>
auto evaluation_awaited(std::shared_ptr<Work> work, async_options::executor_type executor) -> asio::awaitable<decltype(work->take())> {
  work->check();
  co_await throw_if_cancelled();
  const evaluation_under_way<Work> now(work);
  if (executor) {
    asio::post(executor, coro::offloaded_call_ticket(work->offloaded()));
  } else {
    coro::helper_threads::shared().post_apart([call = work->offloaded()] { call->run(); });
  }
  const auto on_cancel = [mine = std::weak_ptr<Work>(work)]() noexcept {  // a weak pointer: the cancellation slot may outlive the work
    if (const auto held = mine.lock()) { held->call_off(); }
  };
  co_await work->offloaded()->done().async_wait_on(asio::use_awaitable, on_cancel);
  co_return work->take();
}

template<class Call, class Token>
auto evaluate_beside(kept_snapshot taken, Call call, const async_evaluate_options& how, Token&& token) {
  using work_type = evaluation_work<Call>;
  const auto work = std::make_shared<work_type>(std::move(taken), std::move(call), how.restore(), how.events());
  return coro::initiate<typename work_type::value_type>(
      std::forward<Token>(token), work, [completions = how.executor()] { return completions; },
      [work, executor = how.evaluates_on()] {
        auto begin = [work, executor] { return evaluation_awaited(work, executor); };
        return defer_cancellation<typename work_type::value_type>(std::move(begin));
      });
}

}  // namespace detail

/// Calls `fn(taken)` and returns its result. The call runs on a separate thread, or on the executor given by `how.evaluates_on`. The
/// session that took the snapshot can continue training in the meantime, because a snapshot is independent of the model. `taken` is a
/// `snapshot`. To use one snapshot in several calls, pass a `std::shared_ptr<const snapshot>`.
///
///     auto taken = co_await session.async_snapshot();
///     auto measure = [&](const stepwell::snapshot& at) { return quality_of(at, test_set); };  // a named object, see below
///     const auto found = co_await async_evaluate(std::move(taken), measure, async_evaluate_options().writes_to(events));
///
/// Give `fn` a name, as in the example. If a lambda with captures, or an aggregate, is created inside an awaited expression, g++ 12
/// destroys it twice (a bug of this compiler). `fn` may take a `std::stop_token` as second parameter. If `how.writes_to` sets a writer,
/// `fn` must return metrics: pairs of tag and number, such as a `summary::metric_list` or a map, or an object whose `metrics()` returns
/// such pairs (see `summary::names_metrics`). The thread that called `fn` passes the numbers to the writer as scalars. Their step is the
/// step of the snapshot, even if training has continued to a later step.
///
/// This is an Asio initiating function. The completion token may be of any kind; the signature is `void(std::exception_ptr, T)`, where `T`
/// is the return type of `fn`.
/// @errors   Exceptions of `fn` or the writer. `invalid_argument_error` if `taken` is a null pointer, or if `how` sets a writer and
///           `fn` does not return metrics. `unavailable_error` if the executor given by `evaluates_on` ended before it called `fn`.
/// @cancel   All kinds of cancellation have the same effect. If `fn` was not called yet, it is not called, and the operation ends with
///           `operation_aborted`. If `fn` is running, a stop is requested through its stop token, and the operation waits until `fn`
///           returns. If `fn` then returns normally, its result is delivered in spite of the cancellation. If `fn` throws
///           `cancelled_error`, the operation ends with `operation_aborted`.
/// @lifetime When the operation has ended, `fn` is not running. If the operation is destroyed together with its event loop, its destructor
///           requests a stop through the stop token and blocks until `fn` has returned. Objects to which `fn` refers must live until then;
///           they may be local variables of the awaiting coroutine. The operation owns the snapshot and copies of `fn` and `how`.
/// @threads  May be called on any thread. Any number of operations may be in flight at a time.
template<class Fn, class Token = boost::asio::use_awaitable_t<>>
  requires(!restorable_model<Fn>)
auto async_evaluate(detail::kept_snapshot taken, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  static_assert(std::invocable<Fn&, const snapshot&, std::stop_token> || std::invocable<Fn&, const snapshot&>,
                "stepwell: async_evaluate(snapshot, fn) calls fn(const snapshot&), or fn(const snapshot&, std::stop_token)");
  auto call = [fn = std::move(fn)](const snapshot& of, const restore_options&, const std::stop_token& stop) mutable -> decltype(auto) {
    return detail::call_evaluation(fn, of, stop);
  };
  return detail::evaluate_beside(std::move(taken), std::move(call), how, std::forward<Token>(token));
}

/// Like the overload above, but evaluates a model: calls `restore(model, taken, how.restore())`, then `fn(model)`, and returns the result
/// of `fn`. Both calls run on the thread or executor of the evaluation. `model` must be a separate object with the same variables, not the
/// model that is being trained.
/// @errors   Those of the overload above, and those of `restore`.
/// @lifetime `model` must outlive the operation. Other code must not use `model` before the operation has ended.
template<restorable_model Model, class Fn, class Token = boost::asio::use_awaitable_t<>>
auto async_evaluate(detail::kept_snapshot taken, Model& model, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  static_assert(std::invocable<Fn&, Model&, std::stop_token> || std::invocable<Fn&, Model&>,
                "stepwell: async_evaluate(snapshot, model, fn) calls fn(model&), or fn(model&, std::stop_token)");
  auto call = [&model, fn = std::move(fn)](const snapshot& of, const restore_options& restoring,
                                           const std::stop_token& stop) mutable -> decltype(auto) {
    stepwell::restore(model, of, restoring);
    return detail::call_evaluation(fn, model, stop);
  };
  return detail::evaluate_beside(std::move(taken), std::move(call), how, std::forward<Token>(token));
}

}  // namespace stepwell
