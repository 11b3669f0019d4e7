// SPDX-License-Identifier: Apache-2.0
//
// A hook that logs values once in each period of runs or seconds, or at the end of the session, or both.
// @see contract HOOK-LOG, D-19
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/tensor.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/hooks/detail/value_text.hpp"
#include "stepwell/hooks/detail/watched_value.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/watched_values.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell {

/// A fetched value, as the option `formatter` receives it.
struct logged_value {
  std::string text;                             ///< The text in a log line.
  std::optional<double> number = std::nullopt;  ///< The number, if the value is a scalar.
};

/// Options of `logging_tensor_hook`. A period or `at_end` is required. The two periods cannot be given together.
struct logging_tensor_options {
  std::optional<std::int64_t> every_n_iter = std::nullopt;   ///< Number of runs between two lines, above zero. Not global steps.
  std::optional<seconds_value> every_n_secs = std::nullopt;  ///< Time between two lines, at least zero.
  /// If true, a clean close logs the values of the last run, even if these values were logged after the last run already. The close does
  /// not run the model again.
  /// @see contract D-19
  bool at_end = false;
  /// Function that returns the complete log line. Its argument maps each tag to the value with this tag. The hook adds no time to this
  /// line. If null, the default format is used.
  std::function<std::string(const std::map<std::string, logged_value>&)> formatter = nullptr;
};

/// Fetches whose values are logged in alphabetical order of the tags, as TensorFlow does if the values are given as a map:
/// `tag_map{tag("loss", &result::loss), tag("accuracy", &result::accuracy)}`. Without a `tag_map`, fetches are logged in the given order.
template<class... Projections>
struct tag_map {
  explicit tag_map(tagged<Projections>... fetches) : entries(std::move(fetches)...) {}

  std::tuple<tagged<Projections>...> entries;
};

namespace detail {

/// A number, a text, or the first elements of a tensor with its shape.
/// @cost Storing a number allocates nothing; storing a tensor allocates at most its shape.
class kept_value {
public:
  /// Stores a value. If `value` is an empty optional, the previous value stays stored, and `is_new` returns false.
  template<class Value>
    requires is_optional<Value>
  void keep(const Value& value) {
    is_new_ = value.has_value();
    if (value) { keep(*value); }
  }
  template<class Value>
  void keep(const Value& value) {
    is_new_ = has_value_ = true;
    if constexpr (lazy_tensor<Value>) {
      detail::view_first(value, shown_, bytes_);
      shown_.bytes = {};
      return;
    }
    if constexpr (detail::number_like<Value>) { number_ = detail::to_number(value); }
    if constexpr (variable_like<const Value>) {
      detail::view_into(value, shown_);
      keep_elements();
    } else {
      shown_.dtype = dtype::invalid;
      text_ = stepwell::value_text(value);
    }
  }

  [[nodiscard]] logged_value logged() const;
  /// Returns true if the last `keep` stored a value.
  [[nodiscard]] bool is_new() const noexcept { return is_new_; }
  /// Returns true if a value was stored.
  [[nodiscard]] bool has_value() const noexcept { return has_value_; }

private:
  /// Copies the elements that `shown_` refers to.
  void keep_elements() {
    if (shown_.bytes.size() == sizeof(float)) [[likely]] {  // a scalar, most often
      std::memcpy(bytes_.data(), shown_.bytes.data(), sizeof(float));
    } else {
      keep_more_elements();
    }
    shown_.bytes = {};
  }
  void keep_more_elements();

  std::string text_;
  std::optional<double> number_;
  tensor_view shown_;  // type and shape, without bytes
  first_elements bytes_{};
  bool is_new_ = false;
  bool has_value_ = false;
};

/// Returns the period of the lines. Empty if a line is logged only at the end.
/// @errors `invalid_argument_error` if both periods are given, if neither a period nor `at_end` is given, if `every_n_iter` is not above
///         zero, or if `every_n_secs` is negative.
/// @see contract HOOK-LOG-1
[[nodiscard]] std::optional<cadence> logging_cadence(const logging_tensor_options& options);

/// Returns the numbers of the values that are new. Empty for texts, for tensors with several elements, and for values that are not new.
[[nodiscard]] std::vector<std::optional<double>> numbers_of(std::span<const kept_value> values);

/// Formats values and their tags as log lines, and logs these lines.
class logging_lines {
public:
  /// @errors `invalid_argument_error` if `is_map` is true and `tags` contains a tag twice.
  logging_lines(std::vector<std::string> tags, bool is_map, logging_tensor_options options);

  [[nodiscard]] bool at_end() const noexcept { return options_.at_end; }
  [[nodiscard]] const std::vector<std::string>& tags() const noexcept { return tags_; }

  /// Logs one line with the values for which `is_shown` returns true. The line is "a = 1, b = 2 (0.123 sec)", or the line that the
  /// formatter returns.
  /// @pre There is one value for each tag.
  void write(std::span<const kept_value> values, bool (kept_value::*is_shown)() const noexcept,
             const std::optional<elapsed_since_trigger>& elapsed) const;

private:
  std::vector<std::string> tags_;
  std::vector<std::size_t> order_;  // positions in `tags_`, in the order of printing
  logging_tensor_options options_;
};

}  // namespace detail

/// Logs "loss = 0.25, accuracy = 0.9 (1.234 sec)" at level info: after the first run, and then once in each period. The time in parentheses
/// is the time since the previous line; the first line has none. A metric of an evaluation has its own name. Any other fetch without a tag
/// is named by its position in the arguments, such as "value_0". An empty `std::optional` is not logged. If all values of a due line are
/// empty, the line is logged after the next run that has a value. With `at_end`, the line at the end has the last value of each fetch that
/// had a value.
/// @cost Without `at_end`, values are fetched only in the runs in which a line is due. With `at_end`, every run fetches the values and
///       stores the part of each value that a log line shows.
template<class... Watched>
class logging_tensor_hook {
  static_assert(sizeof...(Watched) > 0, "stepwell: logging_tensor_hook has nothing to log; give it a fetch");

public:
  using requests_only = logging_tensor_hook;

  /// @errors `invalid_argument_error` for invalid options, and if two tags of a `tag_map` are equal.
  explicit logging_tensor_hook(const logging_tensor_options& options, Watched... watched)
      : logging_tensor_hook(options, false, std::tuple(std::move(watched)...)) {}
  explicit logging_tensor_hook(const logging_tensor_options& options, tag_map<detail::fetch_of<Watched>...> wanted)
      : logging_tensor_hook(options, true, std::move(wanted.entries)) {}

  /// Resets the hook: the next run counts as the first run.
  void begin() {
    runs_ = 0;
    timer_ = {};
    kept_.reset();
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    publisher_.start(session.watched(), lines_.tags());
    if (timer_.never_triggers() && period_) { timer_ = second_or_step_timer(*period_, session.time()); }
  }

  auto before_run(auto& /*context*/) {
    is_due_ = timer_.should_trigger_for_step(runs_);
    return is_due_ || lines_.at_end() ? std::optional(wanted_) : std::nullopt;
  }

  void after_run(auto& context, const auto& values) {
    if (values.has_value()) {
      keep(values, std::index_sequence_for<Watched...>{});
      if (is_due_ && std::ranges::any_of(*kept_, &detail::kept_value::is_new)) { write_line(context, &detail::kept_value::is_new); }
    }
    ++runs_;
  }

  void end(auto& session) {
    const bool has_any = kept_ && std::ranges::any_of(*kept_, &detail::kept_value::has_value);
    if (lines_.at_end() && has_any) { write_line(session, &detail::kept_value::has_value); }
  }

private:
  logging_tensor_hook(const logging_tensor_options& options, bool is_map, const std::tuple<Watched...>& watched)
      : period_(detail::logging_cadence(options)), lines_(tags_of(watched, std::index_sequence_for<Watched...>{}), is_map, options),
        wanted_(std::apply([](const auto&... one) { return stepwell::fetch(detail::untagged(one)...); }, watched)) {}

  template<std::size_t... I>
  static std::vector<std::string> tags_of(const std::tuple<Watched...>& watched, std::index_sequence<I...>) {
    return {detail::name_of(std::get<I>(watched), "value_" + std::to_string(I))...};
  }

  template<std::size_t... I>
  void keep(const auto& values, std::index_sequence<I...>) {
    if (!kept_) { kept_.emplace(); }
    ((*kept_)[I].keep(values.template get<I>()), ...);
  }
  void write_line(auto& session, bool (detail::kept_value::*is_shown)() const noexcept) {
    const log_scope named(session.name());
    publisher_.publish(detail::numbers_of(*kept_), session.global_step());
    lines_.write(*kept_, is_shown, timer_.update_last_triggered_step(runs_));
  }

  std::optional<cadence> period_;
  detail::logging_lines lines_;
  value_publisher publisher_;
  fetch_pack<detail::fetch_of<Watched>...> wanted_;
  second_or_step_timer timer_;
  std::int64_t runs_ = 0;
  bool is_due_ = false;
  std::optional<std::array<detail::kept_value, sizeof...(Watched)>> kept_;  // values of the last run in which this hook fetched values
};

template<class... Projections>
logging_tensor_hook(logging_tensor_options, tag_map<Projections...>) -> logging_tensor_hook<tagged<Projections>...>;

/// Returns a hook that logs values after the first run of this session and then in every `n`-th run, or once in each `period`:
/// `log_every(100, &result::loss, tag("rate", &model::rate))`.
/// @errors The errors of `logging_tensor_hook`.
template<std::integral Steps, class... Given>
  requires(sizeof...(Given) > 0)
[[nodiscard]] auto log_every(Steps n, Given... given) {
  return logging_tensor_hook(logging_tensor_options{.every_n_iter = static_cast<std::int64_t>(n)}, std::move(given)...);
}
template<class Rep, class Period, class... Given>
  requires(sizeof...(Given) > 0)
[[nodiscard]] auto log_every(std::chrono::duration<Rep, Period> period, Given... given) {
  return logging_tensor_hook(logging_tensor_options{.every_n_secs = seconds_value(period)}, std::move(given)...);
}

}  // namespace stepwell
