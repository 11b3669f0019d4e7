// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/writer.hpp"

#include "stepwell/base/detail/memory_shortage.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/format/events/detail/hparams.hpp"
#include "stepwell/format/events/detail/png.hpp"
#include "stepwell/format/events/detail/run_metadata.hpp"
#include "stepwell/format/events/detail/summary_values.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/format/text/detail/utf8.hpp"
#include "stepwell/kernel/histogram.hpp"
#include "stepwell/summary/detail/writer_core.hpp"
#include "stepwell/summary/metric_writer.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <exception>
#include <utility>

namespace stepwell::summary {
namespace {

using stepwell::detail::with_memory;

format::summary single(format::summary_value value) {
  format::summary values;
  values.values.push_back(std::move(value));
  return values;
}

// Returns the histogram and the number of values that are not finite.
template<class Number>
std::pair<format::summary_value, std::uint64_t> histogram_of(std::string tag, std::span<const Number> values, format::summary_style style) {
  if (style == format::summary_style::simple) {
    const auto made = kernel::make_growing_histogram(values);
    return {format::make_histogram_value(std::move(tag), made), made.stats.nonfinite};
  }
  const auto made = kernel::make_equal_histogram(values);
  return {format::make_histogram_value(std::move(tag), made), made.stats.nonfinite};
}

}  // namespace

writer::writer(std::string directory) : writer(std::move(directory), writer_options()) {}
writer::writer(std::string directory, writer_options options) : core_(std::make_unique<core>(std::move(directory), std::move(options))) {}

writer::~writer() {
  try {
    if (core_->out().is_detached()) {
      core_->out().close_detached();
    } else {
      close(core_->out().last_deadline());
    }
  } catch (const std::exception& failure) { log_error(fmt::format("closing the event file {}: {}", path(), failure.what())); }
}

namespace {

/// Applies `action` to the event file and flushes the metric writers. Tries all of them, then throws the first failure and logs the
/// others.
template<class Core, class Action>
void for_all(Core& core, Action action, clock::time_point until) {
  std::exception_ptr first;
  const auto attempt = [&](auto&& one) {
    try {
      one();
    } catch (const std::exception& failure) {
      if (first) {
        log_error(failure.what());
      } else {
        first = std::current_exception();
      }
    }
  };
  attempt([&] { action(core.out()); });
  for (const auto& metric : core.metrics()) {
    attempt([&] { metric->flush(until); });
  }
  if (first) { std::rethrow_exception(first); }
}

}  // namespace

void writer::add_float(std::string_view tag, float value, std::int64_t step) { core_->add_float(tag, value, step); }

namespace {

template<class Core, class Number>
void add_histogram_to(Core& core, std::string_view tag, std::span<const Number> values, std::int64_t step) {
  if (!core.accepts()) { return; }
  auto [value, left_out] = histogram_of(std::string(tag), values, core.style());
  if (left_out > 0 && core.is_first("not finite", tag)) {
    log_warning(
        fmt::format("{} of the {} values of histogram {} at step {} are NaN or infinite and left out "
                    "(logged once for each tag)",
                    left_out, values.size(), tag, step));
  }
  core.add_event({0, step, single(std::move(value)), ""});
}

}  // namespace

void writer::add_histogram(std::string_view tag, std::span<const float> values, std::int64_t step) {
  add_histogram_to(*core_, tag, values, step);
}

void writer::add_histogram(std::string_view tag, std::span<const double> values, std::int64_t step) {
  add_histogram_to(*core_, tag, values, step);
}

void writer::add_text(std::string_view tag, std::string_view text, std::int64_t step) {
  if (!core_->accepts()) { return; }
  add_summary(with_memory("could not encode a text", path(),
                          [&] { return single(format::make_text_value(std::string(tag), format::to_utf8(text))); }),
              step);
}

void writer::add_image(std::string_view tag, const image_view& image, std::int64_t step) {
  if (!core_->accepts()) { return; }
  auto png = value_or_throw(with_memory("could not encode an image", path(),
                                        [&] { return format::encode_png(image.pixels, image.width, image.height, image.channels); }));
  const bool is_old = core_->style() == format::summary_style::simple;
  add_summary(single(format::make_image_value(fmt::format("{}{}", tag, is_old ? "/image" : ""), static_cast<std::int32_t>(image.width),
                                              static_cast<std::int32_t>(image.height), image.channels, std::move(png), core_->style())),
              step);
}

void writer::add_hparams(const format::hparam_map& settings, std::string_view group_name) {
  if (!core_->accepts()) { return; }
  if (!core_->is_first("hparams", "start")) {
    return log_warning(fmt::format("the hyperparameters of {} are already in its event file: the new ones are dropped", directory()));
  }
  format::hparams_start start{settings, "", "", std::string(group_name), core_->now_seconds()};
  add_summary(single(format::make_hparams_value(std::move(start))), 0);
}

void writer::add_hparams_end(format::hparams_status how) {
  if (!core_->accepts()) { return; }
  if (!core_->is_first("hparams", "end")) {
    return log_warning(fmt::format("the final status of the run in {} is already in its event file: the new one is dropped", directory()));
  }
  add_summary(single(format::make_hparams_value(format::hparams_end{how, core_->now_seconds()})), 0);
}

void writer::add_session_log(format::session_status status, std::int64_t step, std::string_view checkpoint_path, std::string_view message) {
  add_event({0, step, format::session_log{status, std::string(checkpoint_path), std::string(message)}, ""});
}

void writer::add_graph(std::string graph_def_bytes, std::int64_t step) {
  add_event({0, step, format::graph_def{std::move(graph_def_bytes)}, ""});
}

void writer::add_meta_graph(std::string meta_graph_def_bytes, std::int64_t step) {
  add_event({0, step, format::meta_graph_def{std::move(meta_graph_def_bytes)}, ""});
}

void writer::add_run_metadata(const run_metadata& observed, std::string_view tag, std::int64_t step) {
  if (!core_->accepts()) { return; }
  add_run_metadata(with_memory("could not encode run metadata", path(), [&] { return format::encode_run_metadata(observed); }), tag, step);
}

void writer::add_run_metadata(std::string run_metadata_bytes, std::string_view tag, std::int64_t step) {
  if (!core_->accepts()) { return; }
  if (!core_->is_first("run metadata", format::to_utf8(tag))) {
    throw invalid_argument_error(fmt::format("run metadata with the tag {} was already written; choose another tag", tag), path());
  }
  add_event({0, step, format::tagged_run_metadata{std::string(tag), std::move(run_metadata_bytes)}, ""});
}

void writer::add_summary(format::summary values, std::int64_t step) { add_event({0, step, std::move(values), ""}); }
void writer::add_event(format::event happened) { core_->add_event(std::move(happened)); }
void writer::add_event_bytes(std::span<const std::byte> event) { core_->add_bytes(event); }
void writer::request_flush() {
  core_->out().request_flush();
  for (const auto& metric : core_->metrics()) { metric->request_flush(); }
}

std::vector<io::byte_queue::pending_flush> writer::start_flush() {
  std::vector<io::byte_queue::pending_flush> started{core_->out().start_flush()};
  for (const auto& metric : core_->metrics()) { started.push_back(metric->start_flush()); }
  return started;
}

void writer::flush(clock::time_point until) {
  for_all(*core_, [&](output& file) { file.flush(until); }, until);
}
void writer::close(clock::time_point until) {
  for_all(*core_, [&](output& file) { file.close(until); }, until);
}

void writer::detach() {
  core_->out().detach();
  for (const auto& metric : core_->metrics()) { metric->detach(); }
}

void writer::on_failure(std::function<void(const status&)> action) {
  for (const auto& metric : core_->metrics()) { metric->on_failure(action); }
  core_->out().listeners().add(std::move(action));
}

bool writer::has_failed() const noexcept {
  return core_->out().queue().has_failed() ||
         std::ranges::any_of(core_->metrics(), [](const auto& metric) { return metric->has_failed(); });
}
std::optional<status> writer::failure() const {
  auto found = core_->out().queue().failure();
  for (const auto& metric : core_->metrics()) {
    if (!found) { found = metric->failure(); }
  }
  return found;
}
bool writer::is_closed() const noexcept { return core_->out().is_over(); }
const std::shared_ptr<clock>& writer::time() const noexcept { return core_->time(); }
const std::string& writer::directory() const noexcept { return core_->directory(); }
const std::string& writer::path() const noexcept { return core_->path(); }

}  // namespace stepwell::summary
