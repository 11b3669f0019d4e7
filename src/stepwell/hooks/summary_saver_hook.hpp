// SPDX-License-Identifier: Apache-2.0
//
// A hook that writes summaries, after the first run and then once in each period. This header also has the summary ops. A summary op
// selects a value of a run and the form in which the value is written: `summary::scalar("loss", &result::loss)`.
// @see contract HOOK-SUM, D-5
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/variable.hpp"
#include "stepwell/hooks/detail/kept_numbers.hpp"
#include "stepwell/hooks/detail/optional_value.hpp"
#include "stepwell/protocol/fetch.hpp"
#include "stepwell/protocol/hook.hpp"
#include "stepwell/protocol/hook_options.hpp"
#include "stepwell/protocol/raw_session.hpp"
#include "stepwell/protocol/run_context.hpp"
#include "stepwell/protocol/watched_values.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::detail {

/// False for types that cannot be images: numbers, lists, and tensors whose elements are neither `std::uint8_t` nor `float`.
template<class Value>
concept may_be_image = adapted_tensor<Value> || (tensor_like<const Value> && (dtype_of<typename Value::value_type> == dtype::uint8 ||
                                                                              dtype_of<typename Value::value_type> == dtype::float32));

/// A plain array of pixels: std::vector, std::array, std::span, or an array of the language.
template<class Value>
concept pixel_range =
    std::ranges::contiguous_range<const Value> && std::ranges::sized_range<const Value> &&
    (std::same_as<std::ranges::range_value_t<const Value>, std::uint8_t> ||
     std::same_as<std::ranges::range_value_t<const Value>, std::byte> || std::same_as<std::ranges::range_value_t<const Value>, float>);

}  // namespace stepwell::detail

namespace stepwell::summary {

/// Writes one number. Event files store it as a float; metric writers receive it unchanged.
template<class Projection>
struct scalar_op {
  std::string tag;
  Projection projection;

  /// Writes `value` to `out`, a `writer` or a `metric_writer`.
  void write(auto& out, const auto& value, std::int64_t step) const {
    using value_type = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<value_type>) {
      out.add_scalar(tag, value, step);
    } else if constexpr (std::is_enum_v<value_type>) {
      out.add_scalar(tag, static_cast<std::underlying_type_t<value_type>>(value), step);
    } else {
      out.add_scalar(tag, stepwell::detail::to_number(value), step);
    }
  }
};
template<class Op>
inline constexpr bool is_scalar_op = false;
template<class Projection>
inline constexpr bool is_scalar_op<scalar_op<Projection>> = true;
template<class Projection>
[[nodiscard]] scalar_op<Projection> scalar(std::string tag, Projection projection) {
  return {std::move(tag), std::move(projection)};
}

/// Writes a histogram of `values`. Elements that are neither floats nor doubles are converted to doubles.
/// @errors `invalid_argument_error` if the elements are complex or not numbers.
void write_histogram(writer& out, const std::string& tag, const tensor_view& values, std::int64_t step);
void write_histogram(writer& out, const std::string& tag, const lazy_view& values, std::int64_t step);

/// Writes the distribution of the elements of a tensor, or of a contiguous range of numbers.
template<class Projection>
struct histogram_op {
  std::string tag;
  Projection projection;

  void write(writer& out, const auto& value, std::int64_t step) const {
    if constexpr (lazy_tensor<decltype(value)>) {
      write_histogram(out, tag, lazy_view(value), step);
    } else if constexpr (adapted_tensor<decltype(value)>) {
      write_histogram(out, tag, stepwell::view_of(value), step);
    } else {
      using element = std::remove_cvref_t<decltype(*std::data(value))>;
      if constexpr (std::is_same_v<element, float> || std::is_same_v<element, double>) {
        out.add_histogram(tag, std::span<const element>(std::data(value), std::size(value)), step);
      } else {
        static_assert(stepwell::detail::number_like<element>,
                      "stepwell: a histogram is made of numbers; of complex numbers, give the absolute values");
        const auto numbers = stepwell::detail::to_numbers(value);
        out.add_histogram(tag, std::span<const double>(numbers), step);
      }
    }
  }
};
template<class Projection>
[[nodiscard]] histogram_op<Projection> histogram(std::string tag, Projection projection) {
  return {std::move(tag), std::move(projection)};
}

/// The order of the dimensions of images: count, height, width, channels; or count, channels, height, width, as in LibTorch.
enum class image_layout { nhwc, nchw };

/// Options of `image`.
struct image_options {
  int max_outputs = 3;                       ///< Maximum number of images of one value that are written.
  image_layout layout = image_layout::nhwc;  ///< The order of the dimensions.
  /// The shape of a value that has none, such as a `std::vector`: {28, 28}, {28, 28, 3} or {count, 28, 28, 3}. A tensor gets this shape, too.
  /// Empty: the shape of the tensor.
  tensor_shape shape = {};
  /// The value of a float pixel that is displayed as black, for example -1 for the output of a `tanh`. Lower values are black, too. Not
  /// used for `std::uint8_t`.
  float black = 0;
  float white = 1;  ///< The value of a float pixel that is displayed as white. Greater values are white, too.
};

/// Writes images. The value is a tensor of the shape [height, width], [height, width, channels] or [count, height, width, channels], or with
/// the channels before the height. Its elements are of type `std::uint8_t`, or of type `float`; see `image_options`. The type of the value is
/// `tensor`, `tensor_view`, or a supported tensor type of another library; or a plain array of `std::uint8_t`, `std::byte` or `float`, such as
/// a `std::vector`, whose shape is in the options: `image("digit", &result::pixels, {.shape = {28, 28}})`. The rows begin at the top.
template<class Projection>
struct image_op {
  std::string tag;
  Projection projection;
  image_options options = {};

  void write(writer& out, const auto& value, std::int64_t step) const {
    using value_type = std::remove_cvref_t<decltype(value)>;
    if constexpr (lazy_tensor<value_type>) {
      const auto pixels = stepwell::detail::evaluated(value);
      write_images(out, tag, pixels.view(), options, step);
    } else if constexpr (stepwell::detail::may_be_image<value_type>) {
      write_images(out, tag, stepwell::view_of(value), options, step);
    } else if constexpr (stepwell::detail::pixel_range<value_type>) {
      const std::span pixels(std::ranges::data(value), std::ranges::size(value));
      const auto type = sizeof(pixels.front()) == 1 ? dtype::uint8 : dtype::float32;
      write_images(out, tag, {type, {static_cast<std::int64_t>(pixels.size())}, std::as_bytes(pixels)}, options, step);
    } else {
      static_assert(sizeof(value) == 0,
                    "stepwell: an image is a tensor [height,width], [height,width,channels] or [count,height,width,channels] of "
                    "std::uint8_t or float, or a contiguous range of them with the option .shape");
    }
  }
};
template<class Projection>
[[nodiscard]] image_op<Projection> image(std::string tag, Projection projection, image_options options = {}) {
  return {std::move(tag), std::move(projection), options};
}
/// Writes `images`.
/// @errors `invalid_argument_error` if the tensor is not an image, if `shape` has another number of elements, or if `black` is not below
///         `white`; the message describes the tensor.
void write_images(writer& out, const std::string& tag, const tensor_view& images, const image_options& options, std::int64_t step);

/// Writes text in Markdown.
template<class Projection>
struct text_op {
  std::string tag;
  Projection projection;

  void write(writer& out, const auto& value, std::int64_t step) const { out.add_text(tag, std::string_view(value), step); }
};
template<class Projection>
[[nodiscard]] text_op<Projection> text(std::string tag, Projection projection) {
  return {std::move(tag), std::move(projection)};
}

/// A type with a fetch (the member `projection`) and a function `write` that writes the fetched value.
template<class Op>
concept summary_op = std::move_constructible<Op> && requires(const Op& op) { op.projection; };

}  // namespace stepwell::summary

namespace stepwell {

/// True if `summary_saver_options::at_end` can keep copies of the result `Result` of a step. Specialise it as false for a type that
/// satisfies `std::copy_constructible` although a copy does not compile. An example is a `std::vector` of a type that can only be moved.
template<class Result>
inline constexpr bool can_keep_result = std::copy_constructible<Result>;
template<class Result>
inline constexpr bool can_keep_result<run_outcome<Result>> = can_keep_result<Result>;

namespace detail {

struct default_hooks;

/// Detects changes of variables.
class variable_check {
public:
  explicit variable_check(const variable_list& variables);
  /// @errors `failed_precondition_error` that names the first variable that has changed since the construction.
  void throw_if_changed(const variable_list& now) const;

private:
  std::vector<std::uint32_t> checksums_;
};

/// The period and the writers of a summary_saver_hook.
class summary_work {
public:
  static constexpr cadence default_period{.every_steps = 100};

  /// @errors `invalid_argument_error` if both periods are off.
  explicit summary_work(summary_saver_options options);
  /// Uses `period` instead of the periods in `options`.
  summary_work(summary_saver_options options, cadence period);

  [[nodiscard]] cadence period() const noexcept { return period_; }
  [[nodiscard]] const std::optional<bool>& at_end() const noexcept { return options_.at_end; }
  [[nodiscard]] bool check_variables() const noexcept { return options_.check_variables; }
  /// Returns the event writer. Null if only metrics are written.
  /// @pre `begin` was called.
  [[nodiscard]] summary::writer* writer() noexcept { return options_.writer.get(); }
  [[nodiscard]] const std::vector<std::shared_ptr<summary::metric_writer>>& metrics() const noexcept { return options_.metrics; }

  /// Opens the event file, if one is used, and writes the hyper-parameters.
  void begin();
  /// Registers the writers with a session, after each creation of the session. If the options name no destination, this function uses the
  /// event file of the session.
  /// @errors `invalid_argument_error` if neither the options nor the session have a destination.
  void begin_session(const session_requests& session);
  /// Call this function before a value of `step` is written. In each writer, the first hook of the session that calls it writes a START
  /// record with `step`. Viewers then drop the values that an earlier run wrote for `step` and later steps. If several hooks wrote START
  /// records, viewers would also drop the values between these records.
  void note_start(std::int64_t step);

private:
  void write_hparams();

  summary_saver_options options_;  // `writer` is set by `begin` if there is an output directory
  cadence period_;
  bool has_own_destination_;
  std::optional<session_requests> session_;
  bool needs_start_ = false;  // no value was written in this creation of the session
};

}  // namespace detail

/// Writes the values of summary ops: `summary_saver_hook{{.output_dir = "run"}, summary::scalar("loss", &result::loss)}`. Values are
/// fetched only in the runs after which they are due. A step only adds the values to the queue of the writer, and does not write to the
/// disk. It blocks while the queue is full. An empty `std::optional` is not written. If all values of a run are empty, the values of the
/// next run are due.
/// @cost A run after which nothing is due: one relaxed load, two comparisons, and the copies of `summary_saver_options::at_end`.
template<summary::summary_op... Ops>
class summary_saver_hook {
  static_assert(sizeof...(Ops) > 0,
                "stepwell: summary_saver_hook has nothing to write; give it summary::scalar(\"loss\", "
                "&result::loss), or another function of summary::");

  using numbers_type = detail::kept_numbers<decltype(Ops::projection)...>;

public:
  static constexpr auto phase = hook_phase::observe;
  using requests_only = summary_saver_hook;

  /// @errors `invalid_argument_error` if both periods are off. If there is no destination, the creation of the session throws an
  ///         `invalid_argument_error`.
  explicit summary_saver_hook(const summary_saver_options& options, Ops... ops)
      : summary_saver_hook(std::make_shared<detail::summary_work>(options), std::move(ops)...) {}

  void begin() {
    if (work_) { work_->begin(); }
  }

  void after_create_session(auto& session, auto& /*threads*/) {
    if (!work_) { return; }
    writes_last_ = work_->at_end() != false;
    keeps_result_ = work_->at_end() == true;
    last_ = nullptr;
    kept_step_.reset();
    timer_ = second_or_step_timer(work_->period(), session.time());
    work_->begin_session(session);
    publisher_.start(session.watched(), scalar_tags());
  }

  auto before_run(auto& context) {
    is_due_ = timer_.should_trigger_for_step(context.global_step() + 1) || (writes_last_ && context.is_last_run());
    return is_due_ ? std::optional(wanted()) : std::nullopt;
  }

  void after_run(auto& context, const auto& values) {
    if (is_due_ || keeps_result_) [[unlikely]] {
      const bool has_written = is_due_ && checked(context, [&] { return write(context, context.global_step(), values); });
      last_ = nullptr;
      kept_step_.reset();
      if (keeps_result_ && !has_written) { keep(context, values); }
    } else if constexpr (!numbers_type::is_empty) {
      std::apply([&](const Ops&... op) { numbers_.keep(values, op.projection...); }, ops_);
      kept_step_ = context.global_step();
    }
  }

  void end(auto& session) {
    const auto step = std::exchange(kept_step_, std::nullopt);
    const auto write_kept = std::exchange(last_, nullptr);
    if (!step || !writes_last_ || step == timer_.last_triggered_step()) { return; }  // a step has one value, also if it has several runs
    if (!write_kept) {
      write(session, *step, numbers_);
      return;
    }
    [[maybe_unused]] const auto alone = detail::alone_with(session.raw_session());
    write_kept(*this, session, *step);
  }

private:
  friend struct detail::default_hooks;

  /// Uses the period and the writers of `work`. If `work` is null, the hook writes nothing.
  explicit summary_saver_hook(std::shared_ptr<detail::summary_work> work, Ops... ops) : work_(std::move(work)), ops_(std::move(ops)...) {}

  auto wanted() const {
    return std::apply([](const Ops&... op) { return stepwell::fetch(op.projection...); }, ops_);
  }

  /// Calls `action`, and throws if it changes a variable and checks are on.
  template<class Action>
  bool checked(auto& context, Action action) {
    if (!work_->check_variables()) { return action(); }
    auto& raw = context.raw_session();
    const detail::variable_check check(raw.variables());
    const bool returned = action();
    check.throw_if_changed(raw.variables());
    return returned;
  }

  /// Keeps a copy of the outcome of a run, for `end`.
  void keep(const auto& context, const auto& values) {
    using raw_type = std::remove_cvref_t<decltype(values.raw())>;
    using outcome_type = std::remove_cvref_t<decltype(values.outcome())>;
    if constexpr (can_keep_result<outcome_type>) {
      kept_step_ = context.global_step();
      last_ = [raw = &values.raw(), outcome = values.outcome()](summary_saver_hook& self, const session_requests& session,
                                                                std::int64_t step) {
        const auto wanted = self.wanted();
        self.write(session, step, run_values<raw_type, outcome_type, std::remove_const_t<decltype(wanted)>>(*raw, outcome, &wanted));
      };
    } else {
      throw invalid_argument_error(
          "summary_saver_hook: at_end needs a copy of the result of each step, but this session has results that cannot be copied; set "
          "at_end = false, or make the result copyable");
    }
  }

  /// Writes the values of `step`. Returns false if all of them are empty.
  bool write(const session_requests& session, std::int64_t step, const auto& values) {
    return write(session, step, values, std::index_sequence_for<Ops...>{});
  }
  template<std::size_t... I>
  bool write(const session_requests& session, std::int64_t step, const auto& values, std::index_sequence<I...>) {
    const log_scope named(session.name());  // for the messages of the writers
    // Each value is read once, because a fetch may compute it.
    const std::tuple<decltype(values.template get<I>())...> all{values.template get<I>()...};  // braces: evaluated in order
    bool has_begun = false;  // if nothing is written, the next run is due, too
    const auto begin = [&] {
      if (std::exchange(has_begun, true)) { return; }
      work_->note_start(step);
      timer_.update_last_triggered_step(step);
    };
    publisher_.publish(std::array<std::optional<double>, sizeof...(I)>{number_for<Ops>(std::get<I>(all))...}, step);
    if (auto* const out = work_->writer()) { (write_one(*out, std::get<I>(ops_), std::get<I>(all), step, begin), ...); }
    for (const auto& metric : work_->metrics()) { (write_one(*metric, std::get<I>(ops_), std::get<I>(all), step, begin), ...); }
    return has_begun;
  }
  /// Returns the tags of the ops in their order. The values of ops other than scalars are not published, and stay empty.
  [[nodiscard]] std::vector<std::string> scalar_tags() const {
    return std::apply([](const Ops&... op) { return std::vector<std::string>{tag_of_scalar(op)...}; }, ops_);
  }
  template<class Op>
  static std::string tag_of_scalar(const Op& op) {
    if constexpr (summary::is_scalar_op<Op>) {
      return op.tag;
    } else {
      return {};
    }
  }
  /// Returns the value of a scalar as a number. Empty for other ops.
  template<class Op>
  static std::optional<double> number_for(const auto& value) {
    if constexpr (summary::is_scalar_op<Op> && !numbers_type::template is_missing<decltype(value)>) {
      return detail::is_present(value) ? std::optional(detail::to_number(detail::present(value))) : std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  /// Writes a value that is present, after a call of `begin`. Metric writers receive only scalars.
  template<class Writer>
  static void write_one(Writer& out, const auto& op, const auto& value, std::int64_t step, const auto& begin) {
    if constexpr (numbers_type::template is_missing<decltype(value)>) {
      return;
    } else if (!detail::is_present(value)) {
      return;
    } else if constexpr (requires { op.write(out, detail::present(value), step, begin); }) {
      op.write(out, detail::present(value), step, begin);
    } else if constexpr (std::is_same_v<Writer, summary::writer> || requires { op.write(out, detail::present(value), step); }) {
      begin();
      op.write(out, detail::present(value), step);
    }
  }

  std::shared_ptr<detail::summary_work> work_;
  std::tuple<Ops...> ops_;
  second_or_step_timer timer_;
  bool is_due_ = false;
  bool writes_last_ = false;
  bool keeps_result_ = false;
  value_publisher publisher_;
  numbers_type numbers_;                   // of the run to `kept_step_`
  std::optional<std::int64_t> kept_step_;  // empty: the values of the last run are written
  /// Writes the kept result of the run to `kept_step_`. Empty: only numbers are kept.
  std::function<void(summary_saver_hook&, const session_requests&, std::int64_t)> last_;
};

/// Returns a hook that writes summaries to an event file in `directory` every `n` steps, or once in each `period`:
/// `summarize_every(10, "run", summary::scalar("loss", &result::loss))`. Without `directory`, the hook writes to the event file of its
/// session: `summarize_every(10, summary::scalar("loss", &result::loss))`.
/// @errors The errors of `summary_saver_hook`.
template<std::integral Steps, summary::summary_op... Ops>
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(Steps n, std::string directory, Ops... ops) {
  return summary_saver_hook<Ops...>({.output_dir = std::move(directory), .save_steps = static_cast<std::int64_t>(n)}, std::move(ops)...);
}
template<class Rep, class Period, summary::summary_op... Ops>
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(std::chrono::duration<Rep, Period> period, std::string directory, Ops... ops) {
  return summary_saver_hook<Ops...>({.output_dir = std::move(directory), .save_secs = seconds_value(period)}, std::move(ops)...);
}
template<std::integral Steps, summary::summary_op... Ops>
  requires(sizeof...(Ops) > 0)
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(Steps n, Ops... ops) {
  return stepwell::summarize_every(n, std::string(), std::move(ops)...);
}
template<class Rep, class Period, summary::summary_op... Ops>
  requires(sizeof...(Ops) > 0)
[[nodiscard]] summary_saver_hook<Ops...> summarize_every(std::chrono::duration<Rep, Period> period, Ops... ops) {
  return stepwell::summarize_every(period, std::string(), std::move(ops)...);
}

}  // namespace stepwell
