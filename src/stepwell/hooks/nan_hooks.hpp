// SPDX-License-Identifier: Apache-2.0
//
// Hooks that watch a value for NaN and infinity. After such a value, `nan_tensor_hook` ends training. `rollback_on_nan_hook` restores the
// newest checkpoint, and then changes the model or skips the batch.
// @see contract HOOK-NAN, D-7
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/detail/float_bits.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/kernel/detail/statistics.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/watched_values.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Options of `nan_tensor_hook`.
struct nan_tensor_options {
  bool fail_on_nan_loss = true;  ///< True: throw `nan_loss_error`. False: log a warning and request a stop.
  bool nan_only = false;         ///< True: infinite values are not bad values, as in TensorFlow.
};

namespace detail {

/// Returns true if a number, or any element of a tensor, is NaN. Returns true for infinite values, too, unless `nan_only` is true.
/// @errors `invalid_argument_error` for a tensor whose elements are not numbers.
template<class Value>
[[nodiscard]] bool is_bad(const Value& value, const bool& nan_only) {
  if constexpr (std::floating_point<Value>) {
    if (detail::is_finite(value)) [[likely]] { return false; }
    return !nan_only || detail::is_nan(value);
  } else if constexpr (std::integral<Value>) {
    return false;
  } else {
    if constexpr (requires { tensor_adapter<Value>::any_bad_on_device(value, nan_only); }) {
      if (const auto found = tensor_adapter<Value>::any_bad_on_device(value, nan_only)) { return *found; }
    }
    const auto is_bad_in = [&](const elements_view& all) { return nan_only ? kernel::any_nan(all) : !kernel::all_finite(all); };
    const auto any_bad = [&](auto elements) {
      if (elements.size() == 1) [[likely]] { return detail::is_bad(elements.front(), nan_only); }
      return nan_only ? kernel::any_nan(elements) : !kernel::all_finite(elements);
    };
    if constexpr (lazy_tensor<Value>) {
      return !detail::for_each_block(lazy_view(value), [&](const elements_view& block) { return !is_bad_in(block); });
    } else if constexpr (adapted_tensor<Value>) {
      const auto all = detail::elements_of(value);
      if (all.dtype != dtype::float32 && all.dtype != dtype::float64) [[unlikely]] { return is_bad_in(all); }
      return detail::see_floats(all, any_bad, false);
    } else if constexpr (tensor_element<Value>) {
      return is_bad_in({dtype_of<Value>, std::as_bytes(std::span(&value, 1))});
    } else if constexpr (number_like<Value>) {
      return detail::is_bad(detail::to_number(value), nan_only);
    } else if constexpr (requires { *std::data(value), std::size(value); }) {
      using element = std::remove_cvref_t<decltype(*std::data(value))>;
      const std::span<const element> all(std::data(value), std::size(value));
      if constexpr (std::is_same_v<element, float> || std::is_same_v<element, double>) {
        return any_bad(all);
      } else if constexpr (tensor_element<element>) {
        return is_bad_in({dtype_of<element>, std::as_bytes(all)});
      } else {
        static_assert(
            number_like<element>,
            "stepwell: a NaN guard watches numbers and tensors of numbers, but the elements of this range are not numbers; give it "
            "another value, or a function that returns the numbers");
        return std::ranges::any_of(all, [&](const element& one) { return detail::is_bad(detail::to_number(one), nan_only); });
      }
    } else {
      static_assert(
          number_like<Value>,
          "stepwell: a NaN guard watches numbers and tensors of numbers; give it another value, or a function that returns a number");
      return false;
    }
  }
}

template<class Value>
[[gnu::noinline, gnu::cold]] void publish_wanted(value_publisher& publisher, Value value, std::int64_t step) {
  publisher.publish_one(detail::widened(value), step);
}
/// Publishes a watched value if it is a number and a newer one is wanted.
template<class Value>
[[gnu::always_inline]] inline void publish_number(value_publisher& publisher, const Value& value, std::int64_t step) {
  if constexpr (std::is_arithmetic_v<Value>) {
    if (publisher.is_wanted()) [[unlikely]] { detail::publish_wanted(publisher, value, step); }
  }
}

/// The parameter type for a `Value`: a number is passed by value, so that it can stay in a register, and everything else by reference.
template<class Value>
using passed_apart =
    std::conditional_t<std::is_arithmetic_v<std::remove_cvref_t<Value>>, std::remove_cvref_t<Value>, const std::remove_cvref_t<Value>&>;

/// The part that the NaN guards share: they fetch, publish and check a value.
template<class Watched>
class nan_guard {
public:
  static constexpr auto phase = hook_phase::guard;

  void after_create_session(auto& session, auto& /*threads*/) { publisher_.start(session.watched(), {name_.empty() ? "loss" : name_}); }

  auto before_run(auto& /*context*/) const { return watched_; }

protected:
  nan_guard(const Watched& watched, bool nan_only)
      : watched_(stepwell::fetch(detail::untagged(watched))), nan_only_(nan_only), name_(detail::name_of(watched, "")) {}

  /// Publishes a value that is present. Returns true if it is bad.
  template<class Value>
  [[nodiscard, gnu::always_inline]] bool sees_bad(auto& context, const Value& value) {
    detail::publish_number(publisher_, value, context.global_step());
    return detail::is_bad(value, nan_only_);
  }
  /// Returns the beginning of all messages about a bad value.
  [[nodiscard]] std::string text_of(const std::string& value, std::int64_t step) const {
    return "NaN loss during training. " + (name_.empty() ? "The watched value" : name_) + " is " + value + " at step " +
           std::to_string(step);
  }

private:
  fetch_pack<fetch_of<Watched>> watched_;
  bool nan_only_;
  std::string name_;
  value_publisher publisher_;
};

}  // namespace detail

/// Checks one value after every run: a number or a tensor of any shape. A value is bad if it is NaN or infinite, or if one of its elements
/// is. If `nan_only` is true, infinite values are not bad. An empty `std::optional` is not checked. The device of a tensor looks for bad
/// elements itself, if the adapter of its type has `any_bad_on_device`. After a bad value, the state of the session counts as bad. It is
/// saved neither after this step nor at the close.
/// @errors `nan_loss_error`, thrown by the run, if `fail_on_nan_loss` is true.
template<class Watched>
class nan_tensor_hook : public detail::nan_guard<Watched> {
public:
  using requests_only = nan_tensor_hook;

  nan_tensor_hook(nan_tensor_options options, Watched watched)
      : detail::nan_guard<Watched>(watched, options.nan_only), fails_(options.fail_on_nan_loss) {}
  /// Uses the default options.
  explicit nan_tensor_hook(Watched watched) : nan_tensor_hook(nan_tensor_options{}, std::move(watched)) {}

  [[gnu::always_inline]] void after_run(auto& context, const auto& values) {
    const auto& value = values.value();
    if (!detail::is_present(value)) { return; }
    if (this->sees_bad(context, detail::present(value))) [[unlikely]] {
      // NOLINTNEXTLINE(cppcoreguidelines-slicing): only the requests are passed on
      give_up<detail::passed_apart<decltype(detail::present(value))>>(context, context.global_step(), detail::present(value));
    }
  }

private:
  /// Takes copies of the context and of a number: references would keep the context and the outcome of every run in memory.
  template<class Value>
  [[gnu::noinline, gnu::cold]] void give_up(session_requests context, std::int64_t step, Value value) {
    const auto message = this->text_of(stepwell::value_text(value), step) + "; lower the learning rate, or check the batch of this step";
    context.reject_state(message);
    if (fails_) {
      context.log(log_level::error, message);
      throw nan_loss_error(message);
    }
    context.log(log_level::warning, message);
    context.request_stop({stop_cause::nan, message});
  }

  bool fails_;
};

/// An argument of `rollback_on_nan_hook`: after the rollback, the batch that caused the bad value is skipped. Only a loop over a seekable
/// source can skip a batch. In a call of `run`, and in a loop over a source of any other kind, the state is restored, and then
/// `aborted_error` is thrown. No run has a skipped batch: if it is the last one of an epoch, hooks see no end of this epoch. The means of an
/// `epoch_mean_hook` then continue into the next epoch, and an evaluation at the end of the epoch is left out.
struct skip_batch {};

/// Options of `rollback_on_nan_hook`.
struct rollback_on_nan_options {
  /// Maximum number of rollbacks in a row. The count goes back to 0 when a step has a good value and is later than every step that had a
  /// bad value. When the maximum is reached, the hook throws `nan_loss_error` at the next bad value.
  int max_rollbacks = 10;
  bool nan_only = false;  ///< True: accept infinite values.
};

/// Checks a value like `nan_tensor_hook`. An empty `std::optional` is neither good nor bad. After a bad value, the hook requests a
/// rollback: the session recovers, and restores the newest checkpoint. The session's retry policy counts the rollback as a recovery, and
/// delays it like any other recovery. The same state and the same batch would give the same bad value again. Therefore you must say what
/// happens after the restore. Pass `skip_batch{}`, or a function that changes the model, for example `rollback_on_nan_hook(&result::loss,
/// [&] { model.rate *= 0.5f; })`.
/// @errors Thrown by the run: `nan_loss_error` for a bad value after `max_rollbacks` rollbacks; `aborted_error` if recovery is turned off
///         in the session; `failed_precondition_error` in a worker, because only the chief can restore the model.
template<class Watched>
class rollback_on_nan_hook : public detail::nan_guard<Watched> {
public:
  using requests_only = rollback_on_nan_hook;

  /// @errors `invalid_argument_error` for an empty function, or a negative `max_rollbacks`.
  template<class Answer>
    requires(std::same_as<Answer, skip_batch> || std::constructible_from<std::function<void()>, Answer>)
  rollback_on_nan_hook(rollback_on_nan_options options, Watched watched, Answer answer)
      : detail::nan_guard<Watched>(watched, options.nan_only), skips_(std::same_as<Answer, skip_batch>),
        max_rollbacks_(options.max_rollbacks) {
    detail::refuse_negative("max_rollbacks", options.max_rollbacks);
    if constexpr (!std::same_as<Answer, skip_batch>) {
      change_ = std::move(answer);
      if (!change_) {
        throw invalid_argument_error("rollback_on_nan_hook: the answer is an empty function; give one that changes the model");
      }
    }
  }
  /// Uses the default options.
  template<class Answer>
  rollback_on_nan_hook(Watched watched, Answer answer)
      : rollback_on_nan_hook(rollback_on_nan_options{}, std::move(watched), std::move(answer)) {}

  void after_run(auto& context, const auto& values) {
    const auto& value = values.value();
    if (!detail::is_present(value)) { return; }
    if (this->sees_bad(context, detail::present(value))) [[unlikely]] {
      return roll_back(context, stepwell::value_text(detail::present(value)));
    }
    if (rollbacks_ > 0 && context.global_step() > worst_step_) [[unlikely]] { rollbacks_ = 0; }
  }

  /// Returns the number of rollbacks in a row. The number goes back to 0 when a step has a good value and is later than every step that had
  /// a bad value.
  [[nodiscard]] int rollbacks() const noexcept { return rollbacks_; }

private:
  void roll_back(auto& context, const std::string& value) {
    const auto step = context.global_step();
    const auto what = this->text_of(value, step);
    context.reject_state(what);
    worst_step_ = std::max(worst_step_, step);
    if (rollbacks_ >= max_rollbacks_) {
      const auto message = what + ", after " + std::to_string(rollbacks_) + " rollbacks; max_rollbacks is reached";
      context.log(log_level::error, message);
      throw nan_loss_error(message);
    }
    ++rollbacks_;
    context.log(log_level::warning, what + (skips_ ? "; rolling back to the newest checkpoint and skipping this batch"
                                                   : "; rolling back to the newest checkpoint and changing the model"));
    context.request_rollback({.why = what, .skip_batch = skips_, .answer = change_});
  }

  std::function<void()> change_;
  bool skips_;
  int max_rollbacks_;
  int rollbacks_ = 0;
  std::int64_t worst_step_ = -1;
};

}  // namespace stepwell
