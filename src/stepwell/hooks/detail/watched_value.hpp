// SPDX-License-Identifier: Apache-2.0
//
// A value that a hook watches: a member of the result or of the model, a callable, or a metric of an evaluation; with or without a display
// name.
#pragma once

#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/protocol/detail/evaluated_value.hpp"
#include "stepwell/protocol/fetch.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stepwell::detail {

/// The fetch of a watched value, without its display name. A hook stores the name apart from the fetch, because the fetch is copied in every
/// run that requests it.
template<class Watched>
using fetch_of = std::remove_cvref_t<decltype(detail::untagged(std::declval<const Watched&>()))>;

/// Returns the display name of a watched value, or the name of the metric. Returns `otherwise` for a value without a name.
template<class Watched>
[[nodiscard]] std::string name_of(const Watched& watched, std::string_view otherwise) {
  if constexpr (std::is_same_v<Watched, evaluated_value>) {
    return watched.name();
  } else {
    return std::string(otherwise);
  }
}
template<class Projection>
[[nodiscard]] std::string name_of(const tagged<Projection>& watched, std::string_view /*otherwise*/) {
  return watched.name;
}

/// A number, and the step of the state that has it.
struct number_of_step {
  double number;
  std::int64_t step;
};

/// A number that a hook takes after each run in which the global step reaches a multiple of `every_n_steps`. If a run does several steps and
/// passes a multiple, the number is taken after that run or the next one. If a `std::optional` number is empty, the number of the next run is
/// taken.
template<class Fetch>
class watched_number {
public:
  /// @pre `every_n_steps` is above zero.
  watched_number(Fetch fetch, std::int64_t every_n_steps) : wanted_(stepwell::fetch(std::move(fetch))), every_n_steps_(every_n_steps) {}

  /// Begins or continues with a session. Returns a number that is already known.
  std::optional<number_of_step> start(auto& session, std::string_view /*hook*/) {
    last_ = session.global_step() / every_n_steps_;
    return std::nullopt;
  }
  /// Returns the request for the run that begins. Empty if no number is due after this run.
  [[nodiscard]] auto request(auto& context) {
    is_due_ = (context.global_step() + 1) / every_n_steps_ > last_;
    return is_due_ ? std::optional(wanted_) : std::nullopt;
  }
  /// Returns true if a number was due after the run that has ended.
  [[nodiscard]] bool is_due() const noexcept { return is_due_; }
  /// Returns the number of the run that has ended. Empty if none was due, or if the value is empty.
  [[nodiscard]] std::optional<number_of_step> take(auto& context, const auto& values) {
    if (!is_due_) { return std::nullopt; }
    const auto number = detail::as_number(values.value());
    if (!number) { return std::nullopt; }
    const std::int64_t step = context.global_step();
    last_ = step / every_n_steps_;
    return number_of_step{*number, step};
  }

private:
  fetch_pack<Fetch> wanted_;
  std::int64_t every_n_steps_;
  std::int64_t last_ = 0;  // the period of the number that was taken most recently
  bool is_due_ = false;
};

/// A metric of an evaluation. The hook takes each result once. Nothing is fetched.
template<>
class watched_number<evaluated_value> {
public:
  watched_number(evaluated_value metric, std::int64_t /*every_n_steps*/) : metric_(std::move(metric)) {}

  [[nodiscard]] const evaluated_value& metric() const noexcept { return metric_; }

  /// Begins or continues with a session. The results that are in effect count as taken, except one that the session has made for the
  /// restored state: this function returns it. `hook` is the name of the hook that watches.
  /// @errors `failed_precondition_error` if the session does not have the `evaluate_every` hook that measures the metric.
  std::optional<number_of_step> start(auto& /*session*/, std::string_view hook) {
    metric_.check_is_measured(hook);
    taken_ = metric_.count() - (metric_.is_repeated() ? 1 : 0);
    return take_new();
  }
  static void request(auto& /*context*/) noexcept {}
  /// Returns true: the result of an evaluation can take effect in every run.
  [[nodiscard]] static bool is_due() noexcept { return true; }
  /// Returns the newest result, if it has taken effect since the previous call.
  [[nodiscard]] std::optional<number_of_step> take(auto& /*context*/, const auto& /*values*/) noexcept { return take_new(); }

private:
  [[nodiscard]] std::optional<number_of_step> take_new() noexcept {
    const auto number = metric_.value();
    if (std::exchange(taken_, metric_.count()) == metric_.count() || !number) { return std::nullopt; }
    return number_of_step{*number, metric_.step()};
  }

  evaluated_value metric_;
  std::int64_t taken_ = 0;  // number of results that were taken
};

}  // namespace stepwell::detail
