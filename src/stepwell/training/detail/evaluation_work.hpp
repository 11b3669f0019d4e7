// SPDX-License-Identifier: Apache-2.0
//
// One asynchronous evaluation: the function, the snapshot that it evaluates, its result, and its end before time.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/restore.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/coro/detail/aborted.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/session/detail/async_state.hpp"
#include "stepwell/summary/writer.hpp"

#include <concepts>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

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

  evaluation_work(kept_snapshot taken, Call call, restore_options restore, std::shared_ptr<summary::writer> events)
      : taken_(std::move(taken)), call_(std::move(call)), restore_(std::move(restore)), events_(std::move(events)) {}

  /// Checks that the result can be written if there is a writer.
  /// @errors `invalid_argument_error` if the result type has no numbers.
  void check() const {
    if (events_ && !summary::names_metrics<value_type>) {
      throw invalid_argument_error(
          "async_evaluate: writes_to is given, but the evaluation does not return metrics; return a summary::metric_list, or an object "
          "with metrics()");
    }
  }
  /// Returns the call that makes the evaluation. @lifetime This object must outlive the call.
  [[nodiscard]] const std::shared_ptr<coro::offloaded_call>& offloaded() const noexcept { return offloaded_; }

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
      call_(*taken_, restore_, stop_.get_token());
    } else {
      value_.emplace(call_(*taken_, restore_, stop_.get_token()));
      if constexpr (summary::names_metrics<value_type>) {
        if (events_) { summary::add_metrics(*events_, *value_, (*taken_).step()); }
      }
    }
  }

  /// Returns the result, or throws the exception of the evaluation. If the evaluation was called off, throws `operation_aborted`.
  /// @pre `offloaded()->done()` is set.
  [[nodiscard]] auto take() {
    if (!offloaded_->has_run()) { coro::throw_aborted(); }
    try {
      offloaded_->rethrow();
    } catch (const cancelled_error&) {
      if (!stop_.stop_requested()) { throw; }
      coro::throw_aborted();
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
  restore_options restore_;
  std::shared_ptr<summary::writer> events_;
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

}  // namespace stepwell::detail
