// SPDX-License-Identifier: Apache-2.0
//
// Logs values every so many runs or seconds, and at the end (contract HOOK-LOG, D-19).
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

/// Exactly one of the periods, or `at_end`, or both of these.
struct logging_tensor_options {
  std::optional<std::int64_t> every_n_iter = std::nullopt;  ///< Runs of this session, not global steps; above zero.
  std::optional<seconds_value> every_n_secs = std::nullopt;
  /// At a clean close the values of the last run, also if that run has just logged them. Nothing is run again (D-19).
  bool at_end = false;
  /// Makes the whole line, without the time, out of values by their tag.
  std::function<std::string(const std::map<std::string, logged_value>&)> formatter = nullptr;
};

/// Fetches to be logged in the order of their tags, as TensorFlow does with a map; without one they are logged as given.
/// `tag_map{tag("loss", &result::loss), tag("accuracy", &result::accuracy)}`.
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

/// Logs "loss = 0.25, accuracy = 0.9 (1.234 sec)" at level info: the first run, then as the cadence says. The time is
/// that since the line before. A fetch without a tag is called "value_0" by its place.
/// @cost Values are fetched only in the runs that log. With `at_end` each run keeps what a line would show of them.
template<class... Projections>
class logging_tensor_hook {
  static_assert(sizeof...(Projections) > 0, "stepwell: logging_tensor_hook has nothing to log; give it a fetch");

public:
  /// @errors `invalid_argument_error` as the options say; for a `tag_map` also when two tags are the same.
  template<class... Given>
    requires(std::is_same_v<typename detail::projection_of<Given>::type, Projections> && ...)
  explicit logging_tensor_hook(logging_tensor_options options, Given... given)
      : logging_tensor_hook(std::move(options), std::index_sequence_for<Given...>{}, std::move(given)...) {}
  explicit logging_tensor_hook(logging_tensor_options options, tag_map<Projections...> wanted)
      : logging_tensor_hook(std::move(options), std::move(wanted), std::index_sequence_for<Projections...>{}) {}

  /// Starts afresh: the next run is the first.
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
  std::optional<std::array<kept_value, sizeof...(Projections)>> kept_;  // of the last run that fetched
};

template<class... Given>
logging_tensor_hook(logging_tensor_options, Given...) -> logging_tensor_hook<typename detail::projection_of<Given>::type...>;
template<class... Projections>
logging_tensor_hook(logging_tensor_options, tag_map<Projections...>) -> logging_tensor_hook<Projections...>;

}  // namespace stepwell
