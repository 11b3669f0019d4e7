// SPDX-License-Identifier: Apache-2.0
//
// Ends training when a watched value is no number any more (contract HOOK-NAN, with D-7).
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

struct nan_tensor_options {
  bool fail_on_nan_loss = true;  ///< Throw; else ask to stop, with a warning.
  bool nan_only = false;         ///< Let infinity pass, as TensorFlow does.
};

namespace detail {

/// True when a number, or any element of a tensor, is NaN (or infinite, unless `nan_only`).
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

/// Looks at one value after every run: a number or a tensor of any shape.
/// The state it was seen in is never saved, neither at this boundary nor at `end`.
/// @errors `nan_loss_error` out of the run.
template<class Projection>
class nan_tensor_hook {
public:
  static constexpr auto phase = hook_phase::guard;

  explicit nan_tensor_hook(Projection watched, nan_tensor_options options = {})
      : watched_(stepwell::fetch(std::move(watched))), options_(options) {}
  /// With a name for the message. It is not part of the fetch, which is copied in every run.
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
    const auto message = "NaN loss during training. " + (name_.empty() ? "The value watched" : name_) + " is " +
                         stepwell::value_text(value) + " at step " + std::to_string(context.global_step()) +
                         "; lower the learning rate, or look at the batch of this step";
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
