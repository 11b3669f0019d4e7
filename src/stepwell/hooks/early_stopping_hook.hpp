// SPDX-License-Identifier: Apache-2.0
//
// A hook that ends training when a value no longer improves.
#pragma once

#include "stepwell/base/variable.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hook/hook.hpp"
#include "stepwell/hooks/early_stopping.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace stepwell {

namespace detail {
template<class Value>
[[nodiscard]] std::optional<double> as_score(const Value& value) {
  if constexpr (requires {
                  value.has_value();
                  *value;
                }) {
    return value.has_value() ? std::optional(static_cast<double>(*value)) : std::nullopt;
  } else {
    static_assert(std::convertible_to<Value, double>, "stepwell: early_stopping_hook watches a number, or an optional one");
    return static_cast<double>(value);
  }
}
}  // namespace detail

/// Watches a number, usually measured on data that is not used for training. Requests a stop if the number has not improved for `patience`
/// values, or has become much worse again: `early_stopping_hook{&result::loss, {.patience = 5}}`. A `std::optional` number counts only in
/// the runs in which it has a value. NaN does not count as an improvement. The state is kept across restarts. A run that was stopped and is
/// resumed with the same options stops at once.
/// @errors `invalid_argument_error`, thrown by the run, if generalization loss is used and the number is negative.
template<class Projection>
class early_stopping_hook {
public:
  static constexpr auto phase = hook_phase::guard;

  /// @errors `invalid_argument_error` for invalid options.
  explicit early_stopping_hook(Projection watched, early_stopping_options options)
      : early_stopping_hook(tagged<Projection>{"the watched value", std::move(watched)}, std::move(options)) {}
  explicit early_stopping_hook(tagged<Projection> watched, early_stopping_options options)
      : watched_{{std::move(watched.projection)}}, judge_(std::move(watched.name), std::move(options)) {}

  void begin() { judge_.begin(); }

  void after_create_session(auto& session, auto& /*threads*/) {
    judge_.start(session.global_step());
    if (auto why = judge_.verdict()) { session.request_stop({stop_cause::requested, std::move(*why)}); }
  }

  auto before_run(auto& context) {
    is_due_ = judge_.is_due(context.global_step() + 1);
    return is_due_ ? std::optional(watched_) : std::nullopt;
  }

  void after_run(auto& context, const auto& values) {
    if (!is_due_) { return; }
    const auto value = detail::as_score(values.value());
    if (!value) { return; }
    judge_.take(*value, context.global_step());
    if (auto why = judge_.verdict()) [[unlikely]] { context.request_stop({stop_cause::requested, std::move(*why)}); }
  }

  /// Return the best value so far, and the step after which it was seen. Empty before the first value.
  [[nodiscard]] std::optional<double> best() const noexcept { return judge_.best(); }
  [[nodiscard]] std::optional<std::int64_t> best_step() const noexcept { return judge_.best_step(); }
  /// Returns the number of values since the best one.
  [[nodiscard]] std::int64_t waited() const noexcept { return judge_.waited(); }

  [[nodiscard]] variable_list variables() { return judge_.variables(); }
  [[nodiscard]] const std::string& state_name() const noexcept { return judge_.name(); }

private:
  fetch_pack<Projection> watched_;
  detail::early_stopping judge_;
  bool is_due_ = false;
};

template<class Projection>
early_stopping_hook(tagged<Projection>, early_stopping_options) -> early_stopping_hook<Projection>;
template<class Projection>
early_stopping_hook(Projection, early_stopping_options) -> early_stopping_hook<Projection>;

}  // namespace stepwell
