// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/writer.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/host_name.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/format/detail/run_metadata.hpp"
#include "stepwell/format/events/detail/png.hpp"
#include "stepwell/format/events/detail/summary_values.hpp"
#include "stepwell/format/events/record.hpp"
#include "stepwell/io/fenced_directory.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/summary/detail/event_stream.hpp"
#include "stepwell/summary/detail/event_time.hpp"
#include "stepwell/summary/detail/output.hpp"
#include "stepwell/summary/metric_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <unordered_set>

namespace stepwell::summary {
namespace {

using format::summary_style;
using stepwell::detail::with_memory;

/// Hash that allows lookup of strings by `string_view`.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

std::string made_directory(io::file_system& files, const std::string& directory) {
  value_or_throw(files.create_directories(directory));
  return value_or_throw(files.canonical(directory));
}

/// Returns a name whose time is later than those of all event files among `names`, because viewers read the files of a directory in the
/// order of their names and do not return to an earlier one.
std::string next_name(std::span<const std::string> names, std::int64_t now, std::string_view suffix) {
  constexpr std::string_view prefix = "events.out.tfevents.";
  constexpr std::int64_t last_second = 9'999'999'999;  // up to ten digits the order of names is the order of times
  for (std::string_view name : names) {
    if (!name.starts_with(prefix)) { continue; }
    name.remove_prefix(prefix.size());
    std::int64_t seconds = 0;
    const auto failure = std::from_chars(name.data(), name.data() + name.size(), seconds).ec;
    if (failure == std::errc{} && seconds >= 0 && seconds < last_second) { now = std::max(now, seconds + 1); }
  }
  static std::atomic<std::uint64_t> counter = 0;
  return fmt::format("{}{:010}.{}.{}.{}{}", prefix, now, detail::host_name(), ::getpid(), counter.fetch_add(1, std::memory_order_relaxed),
                     suffix);
}

void warn_if_not_last(std::span<const std::string> names, const std::string& ours) {
  for (const auto& name : names) {
    if (is_event_file(name) && name >= ours) {
      log_warning(fmt::format("viewers will read {} after {} and may ignore the second file; move the first one away", name, ours));
    }
  }
}

/// A sink that fails in `sync` after the file was removed or renamed.
class event_file_sink final : public io::byte_sink {
public:
  event_file_sink(std::shared_ptr<io::file_system> files, std::string path, std::unique_ptr<io::file> target)
      : files_(std::move(files)), path_(std::move(path)), target_(io::sink_into(std::move(target))) {}

  result<void> write(std::span<const std::byte> bytes) override {
    trace_span span("write", "summary");
    span.argument("file", path_);
    span.argument("bytes", bytes.size());
    return target_->write(bytes);
  }
  result<void> sync() override {
    trace_span span("sync", "summary");
    span.argument("file", path_);
    if (auto synced = target_->sync(); !synced) { return synced; }
    const auto is_there = files_->exists(path_);
    if (!is_there) { return is_there.error(); }
    if (*is_there) { return {}; }
    return status(errc::not_found,
                  "the event file was removed or renamed while it was written; later events would be lost, start a new writer", path_);
  }
  result<void> close() override { return target_->close(); }

private:
  std::shared_ptr<io::file_system> files_;
  std::string path_;
  std::unique_ptr<io::byte_sink> target_;
};

/// A new, empty event file.
struct event_file {
  std::string path;
  std::unique_ptr<io::byte_sink> sink;
};

writer_options completed(writer_options options) {
  if (!options.file_system) { options.file_system = io::posix_file_system(); }
  if (!options.threads) { options.threads = io::pool::shared(); }
  if (!options.clock) { options.clock = system_clock(); }
  return options;
}

/// Creates an event file with a name greater than the names of all event files in the directory. Never changes an existing file.
event_file make_event_file(const std::string& directory, const writer_options& options) {
  if (checked(options).filename_suffix.find('/') != std::string::npos) {
    throw invalid_argument_error("filename_suffix, the end of an event file's name, must not contain a slash: " + options.filename_suffix);
  }
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(options.clock->wall_now().time_since_epoch()).count();
  constexpr int attempts = 16;  // another host may take the same name, but hardly twice
  for (int attempt = 1;; ++attempt) {
    const auto names = value_or_throw(options.file_system->list(directory));
    const auto name = next_name(names, now, options.filename_suffix);
    const auto path = io::join_path(directory, name);
    auto opened = options.file_system->open(path, io::open_mode::create_new);
    if (!opened && opened.error().code == errc::already_exists && attempt < attempts) { continue; }
    auto file = value_or_throw(std::move(opened));
    value_or_throw(options.file_system->sync_directory(directory));
    warn_if_not_last(names, name);
    return {path, std::make_unique<event_file_sink>(options.file_system, path, std::move(file))};
  }
}

}  // namespace

struct writer::core {
  core(std::string dir, writer_options wanted)
      : options(completed(std::move(wanted))), directory(made_directory(*options.file_system, dir)),
        file(make_event_file(directory, options)), out(std::move(file.sink), "event writer of " + directory, options) {
    // The time has whole seconds, as TensorFlow writes it.
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(options.clock->wall_now().time_since_epoch());
    const format::file_version version{std::string(format::event_file_version)};
    const auto bytes = format::encode_event({static_cast<double>(now.count()), 0, version, ""});
    add_bytes(std::as_bytes(std::span(bytes)));
    out.flush(io::byte_queue::forever);
  }

  /// Returns true at the first call with this kind and name.
  [[nodiscard]] bool is_first(std::string_view kind, std::string_view name) {
    const stepwell::detail::mutex_lock lock(order);
    return said.insert(fmt::format("{}:{}", kind, name)).second;
  }

  /// Appends a record. `fill` writes its data.
  template<class Fill>
  void append(std::size_t data_size, Fill fill) {
    const auto size = data_size + format::record_overhead;
    out.append(size, [&](std::byte* into) {
      const std::span frame(into, size);
      fill(format::record_data(frame));
      format::seal_record(frame);
      return size;
    });
  }

  void add_bytes(std::span<const std::byte> event) {
    if (!out.accepts()) { return; }
    if (event.size() > format::default_record_limit) {
      throw invalid_argument_error(
          fmt::format("an event of {} bytes exceeds the record limit of readers ({})", event.size(), format::default_record_limit),
          file.path);
    }
    append(event.size(), [&](std::span<std::byte> data) { std::ranges::copy(event, data.begin()); });
  }

  template<class Number>
  static float narrowed(Number value) {
    const stepwell::detail::default_float_mode mode;
    return static_cast<float>(value);
  }

  template<class Number>
  void add_number(std::string_view tag, Number value, std::int64_t step) {
    for (const auto& metric : options.metrics) { metric->add_scalar(tag, value, step); }
    add_float(tag, narrowed(value), step);
  }

  void add_float(std::string_view tag, float value, std::int64_t step) {
    if (!out.accepts()) { return; }
    if (!format::is_utf8(tag)) [[unlikely]] { return add_float(format::to_utf8(tag), value, step); }
    const format::scalar_event happened{times.now(), step, tag, value};
    if (options.style != summary_style::tensor) { return append_float(happened, false); }
    const stepwell::detail::mutex_lock lock(order);
    const bool is_new = !described.contains(tag);
    if (is_new) { described.emplace(tag); }
    append_float(happened, is_new);
  }
  void append_float(const format::scalar_event& happened, bool is_new) {
    const format::scalar_encoder encoder(happened, options.style, is_new);
    append(encoder.size(), [&](std::span<std::byte> data) { encoder.write(data); });
  }

  void add_event(format::event happened) {
    if (const auto* const note = std::get_if<format::session_log>(&happened.what);
        note != nullptr && note->status == format::session_status::start) {
      for (const auto& metric : options.metrics) { metric->add_start(happened.step); }
    }
    if (!out.accepts()) { return; }
    if (happened.wall_time == 0) { happened.wall_time = times.now(); }
    auto* const summary = std::get_if<format::summary>(&happened.what);
    if (summary == nullptr) { return append_event(happened); }
    const stepwell::detail::mutex_lock lock(order);
    for (auto& value : summary->values) {  // metadata is written only once
      if (value.metadata && !described.insert(format::to_utf8(value.tag)).second) { value.metadata.reset(); }
    }
    append_event(happened);
  }
  void append_event(const format::event& happened) {
    const auto bytes = with_memory("could not encode an event", file.path, [&] { return format::encode_event(happened); });
    if (bytes.empty()) { throw invalid_argument_error("the event exceeds the maximum size of a protobuf message (2 GiB)", file.path); }
    add_bytes(std::as_bytes(std::span(bytes)));
  }

  void add_value(format::summary_value value, std::int64_t step) {
    format::summary values;
    values.values.push_back(std::move(value));
    add_event({0, step, std::move(values), ""});
  }

  template<class Values>
  void add_histogram(std::string_view tag, const Values& values, std::int64_t step) {
    if (!out.accepts()) { return; }
    const auto add = [&](const auto& histogram) {
      const auto left_out = histogram.stats.nonfinite;
      if (left_out > 0 && is_first("not finite", tag)) {
        log_warning(
            fmt::format("{} of the {} values of histogram {} at step {} are NaN or infinite and left out (logged once for each tag)",
                        left_out, left_out + histogram.stats.count, tag, step));
      }
      add_value(format::make_histogram_value(std::string(tag), histogram), step);
    };
    if (options.style == summary_style::simple) { return add(kernel::make_growing_histogram(values)); }
    add(kernel::make_equal_histogram(values));
  }

  /// Applies `action` to the event file and flushes the metric writers. Tries all of them, then throws the first failure and logs the
  /// others.
  template<class Action>
  void for_all(Action action, clock::time_point until) {
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
    attempt(action);
    for (const auto& metric : options.metrics) {
      attempt([&] { metric->flush(until); });
    }
    if (first) { std::rethrow_exception(first); }
  }

  const writer_options options;
  event_time times{options.clock};
  const std::string directory;
  event_file file;
  output out;

  stepwell::detail::checked_mutex order;  // held from the lookup of a tag until its value is queued; locked before the queue's mutex
  std::unordered_set<std::string, text_hash, std::equal_to<>> described STEPWELL_GUARDED_BY(order);  // tags whose metadata is in the file
  std::set<std::string> said STEPWELL_GUARDED_BY(order);  // kind and name of everything that is written or logged once
};

writer::writer(std::string directory) : writer(std::move(directory), writer_options()) {}
writer::writer(std::string directory, writer_options options) : core_(std::make_unique<core>(std::move(directory), std::move(options))) {}

writer::~writer() {
  core_->out.end("the event file ", path(), [this](clock::time_point until) { close(until); });
}

std::shared_ptr<writer> writer::shared(const std::string& directory) { return shared(directory, writer_options()); }

std::shared_ptr<writer> writer::shared(const std::string& directory, writer_options options) {
  options = completed(std::move(options));
  struct registry {
    stepwell::detail::checked_mutex mutex;
    std::map<std::pair<const io::file_system*, std::string>, std::weak_ptr<writer>> writers
        STEPWELL_GUARDED_BY(mutex);  // by the canonical path in a file system
  };
  static registry& all = *new registry;  // never destroyed, because static destructors may request writers
  // A fence that is only a substitute for a lock does not separate the sessions of this process. Another fence is that of one writer.
  const auto fenced = std::dynamic_pointer_cast<io::fenced_directory>(options.file_system);
  const bool is_substitute = fenced && fenced->use() == io::fence_use::if_not_lockable;
  const std::pair<const io::file_system*, std::string> where((is_substitute ? fenced->base() : options.file_system).get(),
                                                             made_directory(*options.file_system, directory));
  const stepwell::detail::mutex_lock lock(all.mutex);
  auto known = all.writers[where].lock();
  if (known && !known->is_closed()) {
    const auto& served = known->core_->options.metrics;
    const auto is_served = [&](const auto& metric) { return std::ranges::find(served, metric) != served.end(); };
    if (!std::ranges::all_of(options.metrics, is_served)) {
      log_warning(
          fmt::format("{}: a metric file was given for this directory after its event file was opened; nothing is written to it. Give it "
                      "to the first writer of the directory, such as a hook that is created before the session",
                      where.second));
    }
    return known;
  }
  known = std::make_shared<writer>(where.second, std::move(options));
  std::erase_if(all.writers, [](const auto& entry) { return entry.second.expired(); });
  all.writers[where] = known;
  return known;
}

void writer::add_number(std::string_view tag, float value, std::int64_t step) { core_->add_number(tag, value, step); }
void writer::add_number(std::string_view tag, double value, std::int64_t step) { core_->add_number(tag, value, step); }
void writer::add_number(std::string_view tag, std::int64_t value, std::int64_t step) { core_->add_number(tag, value, step); }
void writer::add_number(std::string_view tag, std::uint64_t value, std::int64_t step) { core_->add_number(tag, value, step); }

void writer::add_histogram(std::string_view tag, std::span<const float> values, std::int64_t step) {
  core_->add_histogram(tag, values, step);
}
void writer::add_histogram(std::string_view tag, std::span<const double> values, std::int64_t step) {
  core_->add_histogram(tag, values, step);
}
void writer::add_histogram(std::string_view tag, const lazy_view& values, std::int64_t step) { core_->add_histogram(tag, values, step); }

void writer::add_text(std::string_view tag, std::string_view text, std::int64_t step) {
  if (!core_->out.accepts()) { return; }
  const auto encode = [&] { return format::make_text_value(std::string(tag), format::to_utf8(text)); };
  core_->add_value(with_memory("could not encode a text", path(), encode), step);
}

void writer::add_image(std::string_view tag, const image_view& image, std::int64_t step) {
  if (!core_->out.accepts()) { return; }
  const auto encode = [&] { return format::encode_png(image.pixels, image.width, image.height, image.channels); };
  auto png = value_or_throw(with_memory("could not encode an image", path(), encode));
  const auto style = core_->options.style;
  auto name = std::string(tag).append(style == summary_style::simple ? "/image" : "");
  core_->add_value(format::make_image_value(std::move(name), static_cast<std::int32_t>(image.width),
                                            static_cast<std::int32_t>(image.height), image.channels, std::move(png), style),
                   step);
}

void writer::add_hparams(const format::hparam_map& settings, std::string_view group_name) {
  if (!core_->out.accepts()) { return; }
  if (!core_->is_first("hparams", "start")) {
    return log_warning(fmt::format("the hyperparameters of {} are already in its event file: the new ones are dropped", directory()));
  }
  core_->add_value(make_hparams_value(format::hparams_start{settings, std::string(group_name), core_->times.now()}), 0);
}

void writer::add_hparams_end(format::hparams_status how) {
  if (!core_->out.accepts()) { return; }
  if (!core_->is_first("hparams", "end")) {
    return log_warning(fmt::format("the final status of the run in {} is already in its event file: the new one is dropped", directory()));
  }
  core_->add_value(make_hparams_value(format::hparams_end{how, core_->times.now()}), 0);
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
  if (!core_->out.accepts()) { return; }
  add_run_metadata(with_memory("could not encode run metadata", path(), [&] { return format::encode_run_metadata(observed); }), tag, step);
}

void writer::add_run_metadata(std::string run_metadata_bytes, std::string_view tag, std::int64_t step) {
  if (!core_->out.accepts()) { return; }
  if (!core_->is_first("run metadata", format::to_utf8(tag))) {
    throw invalid_argument_error(fmt::format("run metadata with the tag {} was already written; choose another tag", tag), path());
  }
  add_event({0, step, format::tagged_run_metadata{std::string(tag), std::move(run_metadata_bytes)}, ""});
}

void writer::add_summary(format::summary values, std::int64_t step) { add_event({0, step, std::move(values), ""}); }
void writer::add_event(format::event happened) { core_->add_event(std::move(happened)); }
void writer::add_event_bytes(std::span<const std::byte> event) { core_->add_bytes(event); }

void writer::request_flush() {
  core_->out.request_flush();
  for (const auto& metric : core_->options.metrics) { metric->request_flush(); }
}

std::vector<io::byte_queue::pending_flush> writer::start_flush() {
  std::vector<io::byte_queue::pending_flush> started{core_->out.start_flush()};
  for (const auto& metric : core_->options.metrics) { started.push_back(metric->start_flush()); }
  return started;
}

void writer::flush(clock::time_point until) {
  core_->for_all([&] { core_->out.flush(until); }, until);
}
void writer::close(clock::time_point until) {
  core_->for_all([&] { core_->out.close(until); }, until);
}

void writer::detach() {
  core_->out.detach();
  for (const auto& metric : core_->options.metrics) { metric->detach(); }
}

void writer::limit_waits(clock::time_point until) {
  core_->out.limit_waits(until);
  for (const auto& metric : core_->options.metrics) { metric->limit_waits(until); }
}

void writer::on_failure(std::function<void(const status&)> action) {
  for (const auto& metric : core_->options.metrics) { metric->on_failure(action); }
  core_->out.on_failure(std::move(action));
}

bool writer::has_failed() const noexcept {
  return core_->out.has_failed() || std::ranges::any_of(core_->options.metrics, &metric_writer::has_failed);
}
std::optional<status> writer::failure() const {
  auto found = core_->out.failure();
  for (const auto& metric : core_->options.metrics) {
    if (!found) { found = metric->failure(); }
  }
  return found;
}
bool writer::is_closed() const noexcept { return core_->out.is_over(); }
const std::shared_ptr<clock>& writer::time() const noexcept { return core_->options.clock; }
const std::string& writer::directory() const noexcept { return core_->directory; }
const std::string& writer::path() const noexcept { return core_->file.path; }

}  // namespace stepwell::summary
