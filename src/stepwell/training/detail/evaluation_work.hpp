// SPDX-License-Identifier: Apache-2.0
//
// Internal: one evaluation of a snapshot, from the call to its end, even if its caller no longer waits.
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/coro/detail/helper_threads.hpp"
#include "stepwell/coro/detail/offloaded_call.hpp"
#include "stepwell/model/restore_model.hpp"
#include "stepwell/session/detail/async_driver.hpp"
#include "stepwell/summary/metric_list.hpp"
#include "stepwell/training/async_evaluate_options.hpp"

#include <boost/asio/post.hpp>

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

/// Calls `fn` with the snapshot, and with a stop token if `fn` takes one.
template<class Fn>
class evaluates_snapshot {
  static_assert(std::invocable<Fn&, const snapshot&, std::stop_token> || std::invocable<Fn&, const snapshot&>,
                "stepwell: async_evaluate(snapshot, fn) calls fn(const snapshot&), or fn(const snapshot&, std::stop_token)");

public:
  explicit evaluates_snapshot(Fn fn) : fn_(std::move(fn)) {}

  decltype(auto) operator()(const snapshot& taken, const restore_options& /*how*/, const std::stop_token& stop) {
    if constexpr (std::invocable<Fn&, const snapshot&, std::stop_token>) {
      return fn_(taken, stop);
    } else {
      return fn_(taken);
    }
  }

private:
  Fn fn_;
};

/// Restores the snapshot into a model and calls `fn` with the model.
template<class Model, class Fn>
class evaluates_model {
  static_assert(std::invocable<Fn&, Model&, std::stop_token> || std::invocable<Fn&, Model&>,
                "stepwell: async_evaluate(snapshot, model, fn) calls fn(model&), or fn(model&, std::stop_token)");

public:
  evaluates_model(Model& model, Fn fn) : model_(&model), fn_(std::move(fn)) {}

  decltype(auto) operator()(const snapshot& taken, const restore_options& how, const std::stop_token& stop) {
    stepwell::restore(*model_, taken, how);
    if constexpr (std::invocable<Fn&, Model&, std::stop_token>) {
      return fn_(*model_, stop);
    } else {
      return fn_(*model_);
    }
  }

private:
  Model* model_;
  Fn fn_;
};

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
          "async_evaluate: writes_to is given, but the evaluation does not return metrics; "
          "return a summary::metric_list, or an object with metrics()");
    }
  }
  void hand_over(const std::shared_ptr<coro::offloaded_call>& offloaded_call) const {
    if (how_.evaluates_on()) {
      boost::asio::post(how_.evaluates_on(), coro::offloaded_call_ticket(offloaded_call));
    } else {
      coro::helper_threads::shared().post_apart([offloaded_call] { offloaded_call->run(); });
    }
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
  /// Returns the result.
  /// @pre The evaluation was called and has returned.
  [[nodiscard]] auto take() {
    if constexpr (std::is_void_v<value_type>) {
      return nothing();
    } else {
      return value_type(std::move(*value_));
    }
  }

  void ask_to_stop() noexcept { stop_.request_stop(); }
  [[nodiscard]] bool was_asked_to_stop() const noexcept { return stop_.stop_requested(); }

private:
  using held_type = std::conditional_t<std::is_void_v<value_type>, nothing, value_type>;

  kept_snapshot taken_;
  Call call_;
  async_evaluate_options how_;
  std::stop_source stop_;
  std::optional<held_type> value_;
};

}  // namespace stepwell::detail
