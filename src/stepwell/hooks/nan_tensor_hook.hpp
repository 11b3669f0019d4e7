// SPDX-License-Identifier: Apache-2.0
//
// A hook that ends training when a watched value is NaN or infinite.
// @see contract HOOK-NAN, D-7
#pragma once

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/kernel/finite.hpp"

#include <cmath>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Options of `nan_tensor_hook`.
struct nan_tensor_options {
  bool fail_on_nan_loss = true;  ///< True: throw. False: request a stop, with a warning.
  bool nan_only = false;         ///< Accept infinite values, as TensorFlow does.
};

namespace detail {

/// Returns true if a number, or any element of a tensor, is NaN (or infinite, unless `nan_only`).
template<class Value>
[[nodiscard]] bool is_bad(const Value& value, bool nan_only) {
  if constexpr (std::floating_point<Value>) {
    return nan_only ? std::isnan(value) : !std::isfinite(value);
  } else if constexpr (std::integral<Value>) {
    return false;
  } else {
    static_assert(variable_like<Value>, "stepwell: nan_tensor_hook watches numbers and tensors of numbers");
    const auto any_bad = [&](auto elements) { return nan_only ? kernel::any_nan(elements) : !kernel::all_finite(elements); };
    if constexpr (adapted_tensor<Value>) {
      return detail::see_floats(stepwell::view_of(value), any_bad, false);
    } else {
      using element = std::remove_cvref_t<decltype(*std::data(value))>;
      if constexpr (std::floating_point<element>) {
        return any_bad(std::span<const element>(std::data(value), std::size(value)));
      } else {
        return false;
      }
    }
  }
}

}  // namespace detail

/// Checks one value after every run: a number or a tensor of any shape. A state with a bad value is not saved at this boundary or at `end`.
/// @errors `nan_loss_error`, thrown by the run, if `fail_on_nan_loss` is true.
template<class Projection>
class nan_tensor_hook {
public:
  static constexpr auto phase = hook_phase::guard;

  explicit nan_tensor_hook(Projection watched, nan_tensor_options options = {})
      : watched_(stepwell::fetch(std::move(watched))), options_(options) {}
  /// Takes a value with a name for the message. The name is not part of the fetch, because the fetch is copied in every run.
  explicit nan_tensor_hook(tagged<Projection> watched, nan_tensor_options options = {})
      : nan_tensor_hook(std::move(watched.projection), options) {
    name_ = std::move(watched.name);
  }

  auto before_run(auto& /*context*/) const { return watched_; }

  void after_run(auto& context, const auto& values) {
    if (detail::is_bad(values.value(), options_.nan_only)) [[unlikely]] { give_up(context, values.value()); }
  }

private:
  [[gnu::noinline, gnu::cold]] void give_up(auto& context, const auto& value) {
    const auto message = "NaN loss during training. " + (name_.empty() ? "The watched value" : name_) + " is " +
                         stepwell::value_text(value) + " at step " + std::to_string(context.global_step()) +
                         "; lower the learning rate, or check the batch of this step";
    context.reject_state(message);
    if (options_.fail_on_nan_loss) {
      log_error(message);
      throw nan_loss_error(message);
    }
    log_warning(message);
    context.request_stop({stop_cause::nan, message});
  }

  fetch_pack<Projection> watched_;
  nan_tensor_options options_;
  std::string name_;
};

template<class Projection>
nan_tensor_hook(tagged<Projection>) -> nan_tensor_hook<Projection>;
template<class Projection>
nan_tensor_hook(tagged<Projection>, nan_tensor_options) -> nan_tensor_hook<Projection>;
template<class Projection>
nan_tensor_hook(Projection) -> nan_tensor_hook<Projection>;
template<class Projection>
nan_tensor_hook(Projection, nan_tensor_options) -> nan_tensor_hook<Projection>;

}  // namespace stepwell
