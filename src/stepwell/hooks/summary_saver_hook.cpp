// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/summary_saver_hook.hpp"

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/checkpoint/snapshot.hpp"
#include "stepwell/hooks/detail/writer_work.hpp"
#include "stepwell/kernel/detail/statistics.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>

namespace stepwell::summary {
namespace {

struct picture_shape {
  std::int64_t count = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
};

picture_shape shape_of(const std::string& tag, const tensor_view& images, image_layout layout) {
  auto s = images.shape;
  if (s.size() == 2) { s.insert(layout == image_layout::nchw ? s.begin() : s.end(), 1); }
  if (s.size() == 3) { s.insert(s.begin(), 1); }
  picture_shape shape;
  if (s.size() == 4) {
    shape = layout == image_layout::nchw ? picture_shape{s[0], s[2], s[3], s[1]} : picture_shape{s[0], s[1], s[2], s[3]};
  }
  const bool is_picture = shape.height > 0 && shape.width > 0 && shape.channels >= 1 && shape.channels <= 4;
  if (is_picture && (images.dtype == dtype::uint8 || images.dtype == dtype::float32)) { return shape; }
  throw invalid_argument_error(fmt::format("summary \"{}\": an image is {} of uint8 or float, with 1 to 4 channels; this is {} {}{}", tag,
                                           layout == image_layout::nchw
                                               ? "[height,width], [channels,height,width] or [count,channels,height,width]"
                                               : "[height,width], [height,width,channels] or [count,height,width,channels]",
                                           to_string(images.dtype), to_string(images.shape),
                                           images.shape.size() == 1 ? "; give its shape, for example {.shape = {28, 28}}" : ""));
}

std::uint8_t as_byte(float value, const image_options& options) {
  const float share = (value - options.black) / (options.white - options.black);
  return std::isnan(share) ? std::uint8_t{0} : static_cast<std::uint8_t>(std::lround(std::clamp(share, 0.0f, 1.0f) * 255));
}

/// Returns the elements of image number `index` as bytes.
std::vector<std::uint8_t> elements_of_image(const tensor_view& images, std::size_t index, std::size_t size, const image_options& options) {
  std::vector<std::uint8_t> elements(size);
  if (images.dtype == dtype::uint8) {
    std::memcpy(elements.data(), images.bytes.data() + index * size, size);
    return elements;
  }
  for (std::size_t i = 0; i < size; ++i) {
    float value;
    std::memcpy(&value, images.bytes.data() + (index * size + i) * sizeof value, sizeof value);
    elements[i] = as_byte(value, options);
  }
  return elements;
}

/// Returns the elements of an image in the order height, width, channels.
std::vector<std::uint8_t> with_channels_last(const std::vector<std::uint8_t>& planes, std::size_t channels) {
  std::vector<std::uint8_t> pixels(planes.size());
  const auto plane = planes.size() / channels;
  for (std::size_t i = 0; i < planes.size(); ++i) { pixels[i % plane * channels + i / plane] = planes[i]; }
  return pixels;
}

/// Returns the images with the shape of the options, if there is one.
tensor_view with_shape(const std::string& tag, tensor_view images, const tensor_shape& shape) {
  if (shape.empty()) { return images; }
  std::int64_t count = 1;
  const bool is_possible =
      std::ranges::all_of(shape, [&](std::int64_t size) { return size >= 0 && !__builtin_mul_overflow(count, size, &count); });
  if (!is_possible || count != element_count(images.shape)) {
    throw invalid_argument_error(fmt::format("summary \"{}\": the option .shape is {}, but the value has {} elements", tag,
                                             to_string(shape), element_count(images.shape)));
  }
  images.shape = shape;
  return images;
}

void throw_unless_real(const std::string& tag, dtype type) {
  if (size_of(type) != 0 && type != dtype::complex64 && type != dtype::complex128) { return; }
  throw invalid_argument_error(
      fmt::format("summary \"{}\": a histogram is made of real numbers, but the elements are of {}", tag, to_string(type)));
}

}  // namespace

void write_histogram(writer& out, const std::string& tag, const tensor_view& values, std::int64_t step) {
  const auto add = [&](auto elements) {
    out.add_histogram(tag, elements, step);
    return true;
  };
  const auto all = detail::elements_of(values);
  if (detail::see_floats(all, add, false)) { return; }
  throw_unless_real(tag, all.dtype);
  std::vector<double> numbers(all.bytes.size() / size_of(all.dtype));
  kernel::to_doubles(all, numbers);
  add(std::span<const double>(numbers));
}

void write_histogram(writer& out, const std::string& tag, const lazy_view& values, std::int64_t step) {
  throw_unless_real(tag, values.dtype);
  out.add_histogram(tag, values, step);
}

void write_images(writer& out, const std::string& tag, const tensor_view& given, const image_options& options, std::int64_t step) {
  if (!(options.black < options.white) || !std::isfinite(options.white - options.black)) {
    throw invalid_argument_error(
        fmt::format("summary \"{}\": black is {}, and white is {}; black must be below white, and their difference finite", tag,
                    options.black, options.white));
  }
  const auto images = with_shape(tag, given, options.shape);
  const auto shape = shape_of(tag, images, options.layout);
  const auto size = static_cast<std::size_t>(shape.height * shape.width * shape.channels);
  const auto count = std::min<std::int64_t>(shape.count, std::max(options.max_outputs, 0));
  // Independent of the number of images, which can be smaller in the last batch of an epoch.
  const bool has_one_series = images.shape.size() < 4 || options.max_outputs == 1;
  for (std::int64_t i = 0; i < count; ++i) {
    auto pixels = elements_of_image(images, static_cast<std::size_t>(i), size, options);
    if (options.layout == image_layout::nchw) { pixels = with_channels_last(pixels, static_cast<std::size_t>(shape.channels)); }
    const image_view view{std::as_bytes(std::span(pixels)), static_cast<std::uint32_t>(shape.width),
                          static_cast<std::uint32_t>(shape.height), static_cast<int>(shape.channels)};
    out.add_image(has_one_series ? tag : fmt::format("{}/{}", tag, i), view, step);
  }
}

}  // namespace stepwell::summary

namespace stepwell::detail {
namespace {

/// Writes the result of the run to which the hyper-parameters of a writer belong.
/// @see contract D-33
class hparams_ending final : public boundary_work {
public:
  explicit hparams_ending(std::shared_ptr<summary::writer> writer) : writer_(std::move(writer)) {}

  void write_ending(const run_ending& ending) override {
    if (ending.how == session_ending::finished) { writer_->add_hparams_end(format::hparams_status::success); }
    if (ending.how == session_ending::failed) { writer_->add_hparams_end(format::hparams_status::failure); }
  }

private:
  std::shared_ptr<summary::writer> writer_;
};

}  // namespace

variable_check::variable_check(const variable_list& variables) {
  for (const auto& variable : variables) { checksums_.push_back(checksum({variable})); }
}

void variable_check::throw_if_changed(const variable_list& now) const {
  for (std::size_t i = 0; i < checksums_.size() && i < now.size(); ++i) {
    if (checksum({now[i]}) == checksums_[i]) { continue; }
    throw failed_precondition_error(fmt::format(
        "the variable \"{}\" changed while the values of summaries were read, so a resumed run would differ; a projection must not change "
        "the model: evaluate a module in evaluation mode (libtorch::evaluating), and take random numbers from a generator of its own",
        now[i].name()));
  }
}

summary_work::summary_work(summary_saver_options options, cadence period)
    : options_(std::move(options)), period_(period),
      has_own_destination_(!options_.output_dir.empty() || options_.writer || !options_.metrics.empty()) {}

summary_work::summary_work(summary_saver_options options)
    : summary_work(options, require_cadence("summary_saver_hook", {"save_steps", options.save_steps, "save_secs", options.save_secs},
                                            default_period)) {}

void summary_work::begin() {
  if (!options_.writer && !options_.output_dir.empty()) { options_.writer = summary::writer::shared(options_.output_dir, options_.events); }
  if (has_own_destination_) { write_hparams(); }
}

void summary_work::write_hparams() {
  if (options_.hparams && options_.writer) { options_.writer->add_hparams(*options_.hparams); }
}

void summary_work::begin_session(const session_requests& session) {
  if (!has_own_destination_) {
    auto writer = session.event_writer();
    if (!writer) {
      throw invalid_argument_error(
          "summary_saver_hook: the session has no directory for event files; give one of output_dir, writer and metrics, or a session with "
          "summary_dir or checkpoint_dir");
    }
    if (std::exchange(options_.writer, writer) != writer) { write_hparams(); }
  }
  session_ = session;
  needs_start_ = true;
  if (options_.writer) { watch_writer(session, options_.writer); }
  if (options_.writer && options_.hparams) {
    session.add_work_for(this, [this] { return std::make_shared<hparams_ending>(options_.writer); });
  }
  for (const auto& metric : options_.metrics) { watch_writer(session, metric); }
}

void summary_work::note_start(std::int64_t step) {
  if (!std::exchange(needs_start_, false)) { return; }
  if (options_.writer && session_->claim(options_.writer.get())) {
    session_->write_records();
    options_.writer->add_session_log(format::session_status::start, step);
  }
  for (const auto& metric : options_.metrics) {
    if (session_->claim(metric.get())) { metric->add_start(step); }
  }
}

}  // namespace stepwell::detail
