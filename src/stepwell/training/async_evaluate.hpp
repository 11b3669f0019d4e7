// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous evaluation of a snapshot while training continues.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/model/restore_model.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/training/async_evaluate_options.hpp"
#include "stepwell/training/detail/evaluation_work.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {

/// Cancellation handler of an evaluation. It prevents an evaluation that has not begun, and requests a stop of one that runs. It
/// holds weak references, because the cancellation slot may outlive both objects.
template<class Work>
class calls_off_evaluation {
public:
  calls_off_evaluation(const std::shared_ptr<Work>& work, const std::shared_ptr<coro::offloaded_call>& offloaded_call) noexcept
      : work_(work), offloaded_(offloaded_call) {}
  void operator()() const noexcept {
    if (const auto work = work_.lock()) { work->ask_to_stop(); }
    if (const auto offloaded_call = offloaded_.lock()) { offloaded_call->call_off(); }
  }

private:
  std::weak_ptr<Work> work_;
  std::weak_ptr<coro::offloaded_call> offloaded_;
};

/// Guard in the waiting coroutine frame. Its destructor ends the evaluation: it requests a stop and waits until the evaluation has
/// returned.
template<class Work>
class evaluation_under_way {
public:
  evaluation_under_way(std::shared_ptr<Work> work, std::shared_ptr<coro::offloaded_call> offloaded_call) noexcept
      : work_(std::move(work)), offloaded_(std::move(offloaded_call)) {}
  evaluation_under_way(const evaluation_under_way&) = delete;
  evaluation_under_way& operator=(const evaluation_under_way&) = delete;
  ~evaluation_under_way() {
    if (!offloaded_->has_run()) { work_->ask_to_stop(); }
    offloaded_->cancel_or_wait();
  }

private:
  std::shared_ptr<Work> work_;
  std::shared_ptr<coro::offloaded_call> offloaded_;
};

/// Runs `work` on its executor or thread and returns its result.
template<class Work>
auto evaluation_awaited(std::shared_ptr<Work> work) -> asio::awaitable<decltype(work->take())> {
  work->check();
  co_await throw_if_cancelled();
  const auto offloaded_call = coro::make_offloaded_call(*work);
  const evaluation_under_way<Work> now(work, offloaded_call);
  work->hand_over(offloaded_call);
  const calls_off_evaluation<Work> on_cancel(work, offloaded_call);
  co_await offloaded_call->done().async_wait_on(asio::use_awaitable, on_cancel);
  if (!offloaded_call->has_run()) { throw_aborted(); }
  bool is_given_up = false;
  try {
    offloaded_call->rethrow();
  } catch (const cancelled_error&) {
    if (!work->was_asked_to_stop()) { throw; }
    is_given_up = true;
  }
  if (is_given_up) { throw_aborted(); }
  co_return work->take();
}

template<class Call, class Token>
auto evaluate_beside(kept_snapshot taken, Call call, async_evaluate_options how, Token&& token) {
  using work_type = evaluation_work<Call>;
  const auto executor = [where = how] { return where.executor(); };
  const auto work = std::make_shared<work_type>(std::move(taken), std::move(call), std::move(how));
  return coro::initiate<typename work_type::value_type>(std::forward<Token>(token), work, executor, [work] {
    auto begin = [work] { return evaluation_awaited(work); };
    return defer_cancellation<typename work_type::value_type>(std::move(begin));
  });
}

}  // namespace detail

/// Calls `fn(taken)` on another thread, or on the executor that `how` names, and returns its result. The session of the snapshot
/// can continue training in the meantime, because a snapshot is independent of the model. `taken` is a snapshot, or a
/// `std::shared_ptr<const snapshot>` to use one snapshot several times.
///
///     auto taken = co_await session.async_snapshot();
///     auto measure = [&](const stepwell::snapshot& at) { return quality_of(at, test_set); };  // named first, for g++ 12
///     const auto found = co_await async_evaluate(std::move(taken), measure, async_evaluate_options().writes_to(events));
///
/// `fn` may take a `std::stop_token` as second parameter. If `fn` returns numbers with tags (`summary::names_metrics`: a
/// `summary::metric_list`, or a type whose `metrics()` returns one) and `how.writes_to` sets a writer, the numbers are written
/// there as scalars. They are written on the thread of `fn`, with the step of the snapshot, even if training has continued to a
/// later step.
///
/// An Asio initiating function: any completion token, signature `void(std::exception_ptr, T)`.
/// @errors   Exceptions of `fn` or the writer. `invalid_argument_error` for a null pointer, and for a writer if the return type of
///           `fn` has no numbers. `unavailable_error` if the executor ended before it called `fn`.
/// @cancel   All kinds. If `fn` was not called yet, it is not called, and the operation ends with `operation_aborted`. If `fn`
///           runs, its stop token reports the stop, and the operation waits until `fn` returns. A result is delivered; a
///           `cancelled_error` from `fn` becomes `operation_aborted`.
/// @lifetime When the operation has ended, `fn` is not running. If the operation is destroyed together with its event loop, it
///           requests a stop by the token and blocks until `fn` has returned. Objects that `fn` refers to must live until then;
///           locals of the awaiting coroutine are sufficient. Snapshot, `fn` and options are kept by the operation.
/// @threads  Any thread. Any number of operations at a time; each one has a separate thread, unless `evaluates_on` sets an executor.
template<class Fn, class Token = boost::asio::use_awaitable_t<>>
  requires(!restorable_model<Fn>)
auto async_evaluate(detail::kept_snapshot taken, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  return detail::evaluate_beside(std::move(taken), detail::evaluates_snapshot<Fn>(std::move(fn)), std::move(how),
                                 std::forward<Token>(token));
}

/// Evaluates a model: calls `restore(model, taken)`, then `fn(model)`, both on the thread or executor of the evaluation. `model`
/// must be a separate model with the same variables, not the model that is being trained.
/// @errors   Also the errors of `restore`.
/// @lifetime `model` must outlive the operation and must not be used by other code in the meantime.
template<restorable_model Model, class Fn, class Token = boost::asio::use_awaitable_t<>>
auto async_evaluate(detail::kept_snapshot taken, Model& model, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  return detail::evaluate_beside(std::move(taken), detail::evaluates_model<Model, Fn>(model, std::move(fn)), std::move(how),
                                 std::forward<Token>(token));
}

}  // namespace stepwell
