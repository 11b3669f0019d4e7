// SPDX-License-Identifier: Apache-2.0
//
// A hook that logs values at a period of runs or seconds, and at the end.
// @see contract HOOK-LOG, D-19
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/hook/fetch.hpp"
#include "stepwell/hooks/detail/kept_value.hpp"
#include "stepwell/hooks/detail/logging_lines.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stepwell {

/// Options of `logging_tensor_hook`. Either exactly one of the periods, or `at_end`, or both a period and `at_end`.
struct logging_tensor_options {
  std::optional<std::int64_t> every_n_iter = std::nullopt;  ///< Runs of this session, not global steps; above zero.
  std::optional<seconds_value> every_n_secs = std::nullopt;
  /// Log the values of the last run at a clean close, even if that run has logged them already. The model is not run again.
  /// @see contract D-19
  bool at_end = false;
  /// Returns the complete line, without the time, for values given by their tags.
  std::function<std::string(const std::map<std::string, logged_value>&)> formatter = nullptr;
};

/// Fetches that are logged in the order of their tags, as TensorFlow does with a map. Without a `tag_map`, fetches are logged in the given
/// order. `tag_map{tag("loss", &result::loss), tag("accuracy", &result::accuracy)}`.
template<class... Projections>
struct tag_map {
  explicit tag_map(tagged<Projections>... given) : entries(std::move(given)...) {}

  std::tuple<tagged<Projections>...> entries;
};

namespace detail {
template<class Given>
struct projection_of {
  using type = Given;
};
template<class Projection>
struct projection_of<tagged<Projection>> {
  using type = Projection;
};

template<class Projection>
tagged<Projection> with_tag(tagged<Projection> given, std::size_t /*position*/) {
  return given;
}
template<class Projection>
tagged<Projection> with_tag(Projection given, std::size_t position) {
  return {"value_" + std::to_string(position), std::move(given)};
}
}  // namespace detail

/// Logs "loss = 0.25, accuracy = 0.9 (1.234 sec)" at level info: in the first run, and then at the given period. The time is the time since
/// the previous line. A fetch without a tag is named by its position, such as "value_0".
/// @cost Values are fetched only in the runs that log. With `at_end`, every run fetches them and stores the part that a line shows.
template<class... Projections>
class logging_tensor_hook {
  static_assert(sizeof...(Projections) > 0, "stepwell: logging_tensor_hook has nothing to log; give it a fetch");

public:
  /// @errors `invalid_argument_error` for invalid options, and if two tags of a `tag_map` are equal.
  template<class... Given>
    requires(std::is_same_v<typename detail::projection_of<Given>::type, Projections> && ...)
  explicit logging_tensor_hook(logging_tensor_options options, Given... given)
      : logging_tensor_hook(std::move(options), std::index_sequence_for<Given...>{}, std::move(given)...) {}
  explicit logging_tensor_hook(logging_tensor_options options, tag_map<Projections...> wanted)
      : logging_tensor_hook(std::move(options), std::move(wanted), std::index_sequence_for<Projections...>{}) {}

  /// Resets the hook: the next run is the first.
  void begin() {
    runs_ = 0;
    timer_ = {};
    kept_.reset();
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (timer_.never_triggers() && period_) { timer_ = second_or_step_timer(*period_, session.time()); }
  }

  auto before_run(auto& /*context*/) {
    is_due_ = timer_.should_trigger_for_step(runs_);
    return is_due_ || lines_.at_end() ? std::optional(wanted_) : std::nullopt;
  }

  void after_run(auto& /*context*/, const auto& values) {
    if (values.has_value()) {
      keep(values, std::index_sequence_for<Projections...>{});
      if (is_due_) { write_line(); }
    }
    ++runs_;
  }

  void end(auto& /*session*/) {
    if (lines_.at_end() && kept_) { write_line(); }
  }

private:
  template<std::size_t... I, class... Given>
  logging_tensor_hook(logging_tensor_options options, std::index_sequence<I...>, Given... given)
      : logging_tensor_hook(std::move(options), false, detail::with_tag(std::move(given), I)...) {}
  template<std::size_t... I>
  logging_tensor_hook(logging_tensor_options options, tag_map<Projections...> wanted, std::index_sequence<I...>)
      : logging_tensor_hook(std::move(options), true, std::get<I>(std::move(wanted.entries))...) {}
  logging_tensor_hook(logging_tensor_options options, bool is_map, tagged<Projections>... wanted)
      : period_(detail::logging_cadence(options.every_n_iter, options.every_n_secs, options.at_end)),
        lines_({std::move(wanted.name)...}, is_map, options.at_end, std::move(options.formatter)),
        wanted_{{std::move(wanted.projection)...}} {}

  template<std::size_t... I>
  void keep(const auto& values, std::index_sequence<I...>) {
    if (!kept_) { kept_.emplace(); }
    ((*kept_)[I].keep(values.template get<I>()), ...);
  }
  void write_line() { lines_.write(*kept_, timer_.update_last_triggered_step(runs_)); }

  std::optional<cadence> period_;
  detail::logging_lines lines_;
  fetch_pack<Projections...> wanted_;
  second_or_step_timer timer_;
  std::int64_t runs_ = 0;
  bool is_due_ = false;
  std::optional<std::array<kept_value, sizeof...(Projections)>> kept_;  // values of the last run that fetched
};

template<class... Given>
logging_tensor_hook(logging_tensor_options, Given...) -> logging_tensor_hook<typename detail::projection_of<Given>::type...>;
template<class... Projections>
logging_tensor_hook(logging_tensor_options, tag_map<Projections...>) -> logging_tensor_hook<Projections...>;

}  // namespace stepwell
