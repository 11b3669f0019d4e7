// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/detail/writer_core.hpp"

#include "stepwell/base/detail/memory_shortage.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/format/events/record.hpp"
#include "stepwell/format/text/detail/utf8.hpp"
#include "stepwell/summary/metric_writer.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace stepwell::summary {
namespace {

std::string made_directory(io::file_system& files, const std::string& directory) {
  value_or_throw(files.create_directories(directory));
  return value_or_throw(files.canonical(directory));
}

new_event_file made_file(const std::string& directory, const writer_options& options) {
  if (options.filename_suffix.find('/') != std::string::npos) {
    throw invalid_argument_error("the suffix of an event file's name must not contain a slash: " + options.filename_suffix);
  }
  return value_or_throw(make_event_file(options.files, directory, options.time->wall_now(), options.filename_suffix));
}

}  // namespace

writer::core::core(std::string directory, writer_options options)
    : options_(std::move(options)), directory_(made_directory(*options_.files, directory)), file_(made_file(directory_, options_)),
      output_(std::move(file_.sink), output_options_of("event writer of " + directory_, options_)) {
  write_first_record();
}

void writer::core::write_first_record() {
  using namespace std::chrono;
  const auto now = duration_cast<seconds>(options_.time->wall_now().time_since_epoch());
  format::event first;
  first.wall_time = static_cast<double>(now.count());  // whole seconds, as TensorFlow writes it
  first.what = format::file_version{std::string(format::event_file_version)};
  const auto bytes = format::encode_event(first);
  add_bytes(std::as_bytes(std::span(bytes)));
  output_.flush(io::byte_queue::forever);
}

bool writer::core::is_first(std::string_view kind, std::string_view name) {
  const std::lock_guard lock(order_);
  return said_.insert(fmt::format("{}:{}", kind, name)).second;
}

double writer::core::now_seconds() const {
  // Microseconds are exact in a double until the year 2255. A direct conversion of nanoseconds would be off by hundreds of nanoseconds.
  using std::chrono::microseconds;
  const auto now = std::chrono::duration_cast<microseconds>(options_.time->wall_now().time_since_epoch());
  return static_cast<double>(now.count()) / 1e6;
}

void writer::core::add_float(std::string_view tag, float value, std::int64_t step) {
  for (const auto& metric : options_.metrics) { metric->add_scalar(tag, value, step); }
  if (!accepts()) { return; }
  if (!format::is_utf8(tag)) [[unlikely]] { return add_float(format::to_utf8(tag), value, step); }
  const format::scalar_event happened{now_seconds(), step, tag, value};
  if (options_.style == format::summary_style::simple) { return put_scalar(happened, false); }
  const std::lock_guard lock(order_);
  const bool is_new = !described_.contains(tag);
  if (is_new) { described_.emplace(tag); }
  put_scalar(happened, is_new);
}

void writer::core::put_scalar(const format::scalar_event& happened, bool with_metadata) {
  const format::scalar_encoder encoder(happened, options_.style, with_metadata);
  const auto size = encoder.size() + format::record_overhead;
  output_.append(size, [&](std::byte* into) {
    const std::span frame(into, size);
    encoder.write(format::record_data(frame));
    format::seal_record(frame);
    return size;
  });
}

void writer::core::add_event(format::event happened) {
  if (const auto* const note = std::get_if<format::session_log>(&happened.what);
      note != nullptr && note->status == format::session_status::start) {
    for (const auto& metric : options_.metrics) { metric->add_start(happened.step); }
  }
  if (!accepts()) { return; }
  if (happened.wall_time == 0) { happened.wall_time = now_seconds(); }
  std::unique_lock lock(order_, std::defer_lock);
  if (auto* const values = std::get_if<format::summary>(&happened.what)) {
    lock.lock();
    drop_repeated_metadata(*values);
  }
  const auto bytes = stepwell::detail::with_memory("could not encode an event", file_.path, [&] { return format::encode_event(happened); });
  if (bytes.empty()) { throw invalid_argument_error("the event exceeds the maximum size of a protobuf message (2 GiB)", file_.path); }
  add_bytes(std::as_bytes(std::span(bytes)));
}

void writer::core::drop_repeated_metadata(format::summary& values) {
  for (auto& value : values.values) {
    if (value.metadata && !described_.insert(format::to_utf8(value.tag)).second) { value.metadata.reset(); }
  }
}

void writer::core::add_bytes(std::span<const std::byte> event) {
  if (!accepts()) { return; }
  if (event.size() > format::default_record_limit) {
    throw invalid_argument_error(
        fmt::format("an event of {} bytes exceeds the record limit of readers ({})", event.size(), format::default_record_limit),
        file_.path);
  }
  const auto size = event.size() + format::record_overhead;
  output_.append(size, [&](std::byte* into) {
    const std::span frame(into, size);
    std::ranges::copy(event, format::record_data(frame).begin());
    format::seal_record(frame);
    return size;
  });
}

}  // namespace stepwell::summary
