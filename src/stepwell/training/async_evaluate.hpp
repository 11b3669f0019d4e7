// SPDX-License-Identifier: Apache-2.0
//
// An evaluation on a snapshot, beside the training that goes on.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/coro/detail/errand.hpp"
#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/model/restore_model.hpp"
#include "stepwell/session/detail/async_parts.hpp"
#include "stepwell/session/detail/async_driver.hpp"
#include "stepwell/training/async_evaluate_options.hpp"
#include "stepwell/training/detail/evaluation_work.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace stepwell {

namespace detail {

/// What a cancellation does: an evaluation that has not begun is called off, one that runs is asked to stop. It keeps neither
/// alive, for the slot of the one who cancels may outlive both.
template<class Work>
class calls_off_evaluation {
public:
  calls_off_evaluation(const std::shared_ptr<Work>& work, const std::shared_ptr<coro::errand>& errand) noexcept
      : work_(work), errand_(errand) {}
  void operator()() const noexcept {
    if (const auto work = work_.lock()) { work->ask_to_stop(); }
    if (const auto errand = errand_.lock()) { errand->call_off(); }
  }

private:
  std::weak_ptr<Work> work_;
  std::weak_ptr<coro::errand> errand_;
};

/// As long as the frame lives that waits: whatever ends it, the evaluation has ended before.
template<class Work>
class evaluation_under_way {
public:
  evaluation_under_way(std::shared_ptr<Work> work, std::shared_ptr<coro::errand> errand) noexcept
      : work_(std::move(work)), errand_(std::move(errand)) {}
  evaluation_under_way(const evaluation_under_way&) = delete;
  evaluation_under_way& operator=(const evaluation_under_way&) = delete;
  ~evaluation_under_way() {
    if (!errand_->has_run()) { work_->ask_to_stop(); }
    errand_->settle();
  }

private:
  std::shared_ptr<Work> work_;
  std::shared_ptr<coro::errand> errand_;
};

/// Has `work` done where it says, and gives what came of it.
template<class Work>
auto evaluation_awaited(std::shared_ptr<Work> work) -> asio::awaitable<decltype(work->take())> {
  work->check();
  co_await throw_if_cancelled();
  const auto errand = coro::make_errand(*work);
  const evaluation_under_way<Work> now(work, errand);
  work->hand_over(errand);
  const calls_off_evaluation<Work> on_cancel(work, errand);
  co_await errand->done().async_wait_on(asio::use_awaitable, on_cancel);
  if (!errand->has_run()) { throw_aborted(); }
  bool is_given_up = false;
  try {
    errand->rethrow();
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

/// Calls `fn(taken)` on another thread, or on the executor that `how` names; what it returns, once it has. Meanwhile the
/// session the snapshot is of can be trained on, for a snapshot is nobody's but its holders'. `taken` is a snapshot, moved in,
/// or a `std::shared_ptr<const snapshot>`, for several to use.
///
///     auto taken = co_await session.async_snapshot();
///     auto measure = [&](const stepwell::snapshot& at) { return quality_of(at, test_set); };  // named first, for g++ 12
///     const auto found = co_await async_evaluate(std::move(taken), measure, async_evaluate_options().writes_to(events));
///
/// `fn` may take a `std::stop_token` besides. Where it returns numbers by tag (`summary::names_metrics`: a
/// `summary::metric_list`, or something whose `metrics()` gives one) and `how.writes_to` a writer, they are written there, on
/// `fn`'s thread, as scalars of the step of the snapshot, however far the training has come since.
///
/// An Asio initiating function: any completion token, signature `void(std::exception_ptr, T)`.
/// @errors   What `fn` throws, or the writer; `invalid_argument_error` for a null pointer, and for a writer where `fn` returns
///           nothing to be written; `unavailable_error` where the executor ended before it called `fn`.
/// @cancel   All kinds. Before `fn` is called it is not, and this ends with `operation_aborted`. Later its stop token says so,
///           and this goes on until it has returned: what it returns is delivered, a `cancelled_error` out of it becomes
///           `operation_aborted`.
/// @lifetime Whatever ends this, `fn` is not running afterwards: destroyed with its event loop, it asks `fn` to stop by the
///           token and waits, blocking, until it has returned. What `fn` refers to must live until then and no longer: the
///           locals of the one who awaits will do. Snapshot, `fn` and options are kept.
/// @threads  Any. Any number at a time; each has a thread of its own, unless `evaluates_on` says otherwise.
template<class Fn, class Token = boost::asio::use_awaitable_t<>>
  requires(!restorable_model<Fn>)
auto async_evaluate(detail::kept_snapshot taken, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  return detail::evaluate_beside(std::move(taken), detail::evaluates_snapshot<Fn>(std::move(fn)), std::move(how),
                                 std::forward<Token>(token));
}

/// The same on a model: `restore(model, taken)`, then `fn(model)`, both there. It is not the model that is trained, but one of
/// the same variables for this alone.
/// @errors   Those of `restore`, too.
/// @lifetime Nobody else uses `model` until this has ended, and it must live as long.
template<restorable_model Model, class Fn, class Token = boost::asio::use_awaitable_t<>>
auto async_evaluate(detail::kept_snapshot taken, Model& model, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  return detail::evaluate_beside(std::move(taken), detail::evaluates_model<Model, Fn>(model, std::move(fn)), std::move(how),
                                 std::forward<Token>(token));
}

}  // namespace stepwell
