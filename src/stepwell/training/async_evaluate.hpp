// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous evaluation of a snapshot while training continues.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/coro/detail/initiate.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/model/model.hpp"
#include "stepwell/session/async_options.hpp"
#include "stepwell/session/detail/async_impl.hpp"
#include "stepwell/summary/writer.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Options of `async_evaluate`. Not an aggregate, because g++ 12 destroys an aggregate created inside an awaited expression twice.
///
///     async_evaluate_options().evaluates_on(pool.get_executor()).writes_to(events)
class async_evaluate_options {
public:
  using executor_type = async_options::executor_type;

  async_evaluate_options() = default;

  /// Sets the executor that calls the evaluation. By default a separate thread calls it and then ends.
  /// @lifetime The context of the executor must either outlive the evaluation or discard its work.
  async_evaluate_options& evaluates_on(executor_type executor) {
    evaluates_on_ = std::move(executor);
    return *this;
  }
  /// Sets the executor for completion handlers without an associated executor, like `async_options::runs_on`.
  async_evaluate_options& runs_on(executor_type executor) {
    completions_.runs_on(std::move(executor));
    return *this;
  }
  /// Sets the writer for the numbers that the evaluation returns (`summary::names_metrics`). They are written with the step of the
  /// snapshot.
  async_evaluate_options& writes_to(std::shared_ptr<summary::writer> events) {
    events_ = std::move(events);
    return *this;
  }
  /// Sets how names of the model map to names in the snapshot, for example `{.names = ema_names(model.variables())}`.
  async_evaluate_options& restores(restore_options how) {
    restore_ = std::move(how);
    return *this;
  }

  /// Returns the executor of the evaluation. Empty: a separate thread.
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

/// A snapshot as a parameter of evaluations: moved in, or shared.
class kept_snapshot {
public:
  explicit(false) kept_snapshot(snapshot taken) : taken_(std::make_shared<const snapshot>(std::move(taken))) {}
  explicit(false) kept_snapshot(std::shared_ptr<const snapshot> taken) : taken_(std::move(taken)) {
    if (!taken_) { throw invalid_argument_error("async_evaluate: the pointer to the snapshot is null"); }
  }
  [[nodiscard]] const snapshot& operator*() const noexcept { return *taken_; }

private:
  std::shared_ptr<const snapshot> taken_;
};

/// Calls `fn(subject)`, with a stop token if `fn` takes one.
template<class Fn, class Subject>
decltype(auto) call_evaluation(Fn& fn, Subject& subject, [[maybe_unused]] const std::stop_token& stop) {
  if constexpr (std::invocable<Fn&, Subject&, std::stop_token>) {
    return fn(subject, stop);
  } else {
    return fn(subject);
  }
}

/// One evaluation with its result.
/// @threads One thread calls it; another one may request a stop.
template<class Call>
class evaluation_work {
public:
  using value_type = std::remove_cvref_t<std::invoke_result_t<Call&, const snapshot&, const restore_options&, const std::stop_token&>>;

  evaluation_work(kept_snapshot taken, Call call, async_evaluate_options how)
      : taken_(std::move(taken)), call_(std::move(call)), how_(std::move(how)) {}

  /// Checks that the result can be written if there is a writer.
  /// @errors `invalid_argument_error` if the result type has no numbers.
  void check() const {
    if (how_.events() && !summary::names_metrics<value_type>) {
      throw invalid_argument_error(
          "async_evaluate: writes_to is given, but the evaluation does not return metrics; return a summary::metric_list, or an object "
          "with metrics()");
    }
  }
  /// Starts the evaluation on its executor or thread.
  void begin() const {
    if (how_.evaluates_on()) {
      boost::asio::post(how_.evaluates_on(), coro::offloaded_call_ticket(offloaded_));
    } else {
      coro::helper_threads::shared().post_apart([call = offloaded_] { call->run(); });
    }
  }
  /// Returns the event that is set when the evaluation has ended or was called off.
  [[nodiscard]] const coro::async_event& done() const noexcept { return offloaded_->done(); }

  /// Prevents an evaluation that has not begun, and requests a stop of one that runs.
  void call_off() noexcept {
    stop_.request_stop();
    offloaded_->call_off();
  }
  /// Like `call_off`, and waits until a running evaluation has returned.
  void end() noexcept {
    if (!offloaded_->has_run()) { stop_.request_stop(); }
    offloaded_->cancel_or_wait();
  }

  void operator()() {
    if constexpr (std::is_void_v<value_type>) {
      call_(*taken_, how_.restore(), stop_.get_token());
    } else {
      value_.emplace(call_(*taken_, how_.restore(), stop_.get_token()));
      if constexpr (summary::names_metrics<value_type>) {
        if (how_.events()) { summary::add_metrics(*how_.events(), *value_, (*taken_).step()); }
      }
    }
  }

  /// Returns the result, or throws the exception of the evaluation. If the evaluation was called off, throws `operation_aborted`.
  /// @pre `done()` is set.
  [[nodiscard]] auto take() {
    if (!offloaded_->has_run()) { throw_aborted(); }
    try {
      offloaded_->rethrow();
    } catch (const cancelled_error&) {
      if (!stop_.stop_requested()) { throw; }
      throw_aborted();
    }
    if constexpr (std::is_void_v<value_type>) {
      return nothing();
    } else {
      return value_type(std::move(*value_));
    }
  }

private:
  using held_type = std::conditional_t<std::is_void_v<value_type>, nothing, value_type>;

  kept_snapshot taken_;
  Call call_;
  async_evaluate_options how_;
  std::stop_source stop_;
  std::optional<held_type> value_;
  const std::shared_ptr<coro::offloaded_call> offloaded_ = coro::make_offloaded_call(*this);
};

/// Guard in the waiting coroutine frame. Its destructor ends the evaluation.
template<class Work>
class evaluation_under_way {
public:
  explicit evaluation_under_way(std::shared_ptr<Work> work) noexcept : work_(std::move(work)) {}
  evaluation_under_way(const evaluation_under_way&) = delete;
  evaluation_under_way& operator=(const evaluation_under_way&) = delete;
  ~evaluation_under_way() { work_->end(); }

private:
  std::shared_ptr<Work> work_;
};

/// Runs `work` on its executor or thread and returns its result.
template<class Work>
auto evaluation_awaited(std::shared_ptr<Work> work) -> asio::awaitable<decltype(work->take())> {
  work->check();
  co_await throw_if_cancelled();
  const evaluation_under_way<Work> now(work);
  work->begin();
  const auto on_cancel = [mine = std::weak_ptr<Work>(work)]() noexcept {  // weak: the cancellation slot may outlive the work
    if (const auto held = mine.lock()) { held->call_off(); }
  };
  co_await work->done().async_wait_on(asio::use_awaitable, on_cancel);
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
///     auto measure = [&](const stepwell::snapshot& at) { return quality_of(at, test_set); };  // a named object, because of g++ 12
///     const auto found = co_await async_evaluate(std::move(taken), measure, async_evaluate_options().writes_to(events));
///
/// `fn` may take a `std::stop_token` as second parameter. If `fn` returns numbers with tags (`summary::names_metrics`: a
/// `summary::metric_list`, or a type whose `metrics()` returns one) and `how.writes_to` sets a writer, the numbers are written there as
/// scalars. They are written on the thread of `fn`, with the step of the snapshot, even if training has continued to a later step.
///
/// An Asio initiating function: any completion token, signature `void(std::exception_ptr, T)`.
/// @errors   Exceptions of `fn` or the writer. `invalid_argument_error` if `taken` is a null pointer, or if `how` sets a writer and
///           the return type of `fn` has no numbers. `unavailable_error` if the executor ended before it called `fn`.
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
  static_assert(std::invocable<Fn&, const snapshot&, std::stop_token> || std::invocable<Fn&, const snapshot&>,
                "stepwell: async_evaluate(snapshot, fn) calls fn(const snapshot&), or fn(const snapshot&, std::stop_token)");
  auto call = [fn = std::move(fn)](const snapshot& of, const restore_options&, const std::stop_token& stop) mutable -> decltype(auto) {
    return detail::call_evaluation(fn, of, stop);
  };
  return detail::evaluate_beside(std::move(taken), std::move(call), std::move(how), std::forward<Token>(token));
}

/// Evaluates a model: calls `restore(model, taken)`, then `fn(model)`, both on the thread or executor of the evaluation. `model`
/// must be a separate model with the same variables, not the model that is being trained.
/// @errors   Also the errors of `restore`.
/// @lifetime `model` must outlive the operation and must not be used by other code in the meantime.
template<restorable_model Model, class Fn, class Token = boost::asio::use_awaitable_t<>>
auto async_evaluate(detail::kept_snapshot taken, Model& model, Fn fn, async_evaluate_options how = {}, Token&& token = Token()) {
  static_assert(std::invocable<Fn&, Model&, std::stop_token> || std::invocable<Fn&, Model&>,
                "stepwell: async_evaluate(snapshot, model, fn) calls fn(model&), or fn(model&, std::stop_token)");
  auto call = [&model, fn = std::move(fn)](const snapshot& of, const restore_options& restoring,
                                           const std::stop_token& stop) mutable -> decltype(auto) {
    stepwell::restore(model, of, restoring);
    return detail::call_evaluation(fn, model, stop);
  };
  return detail::evaluate_beside(std::move(taken), std::move(call), std::move(how), std::forward<Token>(token));
}

}  // namespace stepwell
