// SPDX-License-Identifier: Apache-2.0
//
// A writer of event files for TensorBoard, like TensorFlow's FileWriter. The caller encodes an event into a bounded queue and continues. A
// task on the I/O pool writes the events in the queue to the file.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/trace.hpp"
#include "stepwell/format/events/event.hpp"
#include "stepwell/io/detail/byte_queue.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::summary {

class metric_writer;

/// Options of a writer of event files.
struct writer_options {
  std::shared_ptr<io::file_system> file_system = nullptr;  ///< Null: the file system of the machine.
  std::shared_ptr<io::pool> threads = nullptr;             ///< Pool that runs the writing task. Null: the pool that the process shares.
  std::shared_ptr<stepwell::clock> clock = nullptr;        ///< Null: the clock of the machine.
  std::size_t max_queue_bytes = std::size_t{4} << 20;  ///< Size of the queue, above zero. While the queue is full, adding an event blocks.
  /// Minimum time between two flushes that the writer starts by itself. The first event that is added after this time causes a flush.
  /// Without a further event, nothing is flushed. 0: each event causes a flush.
  seconds_value flush_secs = 120.0;
  std::string filename_suffix = {};  ///< End of the file's name. Must not contain a slash.
  format::summary_style style = format::summary_style::simple;
  /// Metric writers that also receive every `add_scalar` and each START event, but no histograms, texts or images. They are flushed with
  /// this writer, and their failures count as failures of this writer. This writer does not close them.
  std::vector<std::shared_ptr<metric_writer>> metrics = {};
};

/// An image in memory: rows from the top, channels interleaved, 8 bits for each channel.
struct image_view {
  std::span<const std::byte> pixels;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int channels = 1;  ///< 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA.
};

/// One event file in one directory, open from construction to `close`.
///
/// Events are written in the order of the calls, each with the time of its call. Plugin metadata is written only with the first
/// value of a tag. Bytes of a tag that are not valid UTF-8 are replaced.
///
/// @errors  A failed write ends the writer. The failure is passed to `on_failure` and thrown once, by the next `add_*`, `flush` or `close`,
///          or by a call that is blocked on the full queue. Later calls of `add_*`, and calls after `close`, drop their values with a warning.
/// @threads All functions may be called from any thread, except a thread of `writer_options::threads`. Such a thread may wait for the results
///          of `start_flush`.
class writer {
public:
  /// Creates the directory, and a new event file in it. The name of the new file sorts after the names of all event files in the directory.
  /// Existing files are never changed. The first record is on disk when the constructor returns.
  /// @errors `invalid_argument_error` if the suffix contains a slash, `max_queue_bytes` is 0, or `flush_secs` is negative. Failures of the
  ///         file system.
  explicit writer(std::string directory);
  explicit writer(std::string directory, writer_options options);
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;
  /// Calls `close`, and logs its failure. Does not wait after `detach`, or if the last `flush` has reached its deadline: the rest of the
  /// file is then written in the background, as long as the process lives.
  ~writer();

  /// Returns the writer of `directory` that all callers in this process share. Two directories are the same if their file systems and their
  /// canonical paths are the same. If there is no writer, or if it is closed, creates a writer. The writer is closed when its last owner
  /// releases it. `options` apply only if a writer is created. If metric writers in `options` are ignored, a warning is logged.
  [[nodiscard]] static std::shared_ptr<writer> shared(const std::string& directory);
  [[nodiscard]] static std::shared_ptr<writer> shared(const std::string& directory, writer_options options);

  /// Writes one number. The event file stores it as a float. `writer_options::metrics` receive it unchanged.
  /// @cost Well under a microsecond, unless the queue is full. No allocation, except for the first value of a tag in tensor style and for a
  ///       tag that is not UTF-8.
  template<class Number>
    requires std::is_arithmetic_v<Number>
  void add_scalar(std::string_view tag, Number value, std::int64_t step) {
    using kept = std::conditional_t<std::is_floating_point_v<Number>, std::conditional_t<std::is_same_v<Number, float>, float, double>,
                                    std::conditional_t<std::is_unsigned_v<Number>, std::uint64_t, std::int64_t>>;
    add_number(tag, static_cast<kept>(value), step);
  }

  /// Writes a histogram of the finite values. If some values are not finite, logs a warning once for each tag.
  /// Simple style: the buckets of TensorFlow 1. Tensor style: 30 buckets of equal width.
  /// @cost Computes the buckets in this call: about 10 ns for each value.
  void add_histogram(std::string_view tag, std::span<const float> values, std::int64_t step);
  void add_histogram(std::string_view tag, std::span<const double> values, std::int64_t step);
  /// Like the overloads for spans, with elements that are computed in blocks. Tensor style reads each element twice.
  /// @errors `invalid_argument_error` if the elements are complex or not numbers, or if the second reading gives values outside the range
  ///         of the first, for example if the elements are random numbers.
  void add_histogram(std::string_view tag, const lazy_view& values, std::int64_t step);

  /// Writes a text in Markdown.
  void add_text(std::string_view tag, std::string_view text, std::int64_t step);

  /// Writes an image. In simple style, appends "/image" to the tag, like TensorFlow 1.
  /// @errors `invalid_argument_error` if the pixels do not match the image's size and channels.
  /// @cost   Encodes the PNG in this call: milliseconds for 256 x 256 RGB.
  void add_image(std::string_view tag, const image_view& image, std::int64_t step);

  /// Writes the settings of this run for the hyperparameter dashboard. Only the first call has an effect; further calls log a warning.
  void add_hparams(const format::hparam_map& settings, std::string_view group_name = {});
  /// Writes the final status of this run for the hyperparameter dashboard. Only the first call has an effect; further calls log a warning.
  void add_hparams_end(format::hparams_status how);

  /// Writes a session event, such as START or CHECKPOINT. The `step` of a START must be the lowest step of all events that follow it. If the
  /// directory already has a START, viewers drop all events before the new START that have this step or a greater step.
  void add_session_log(format::session_status status, std::int64_t step, std::string_view checkpoint_path = {},
                       std::string_view message = {});

  /// Writes a graph, given as the bytes of a GraphDef or MetaGraphDef.
  void add_graph(std::string graph_def_bytes, std::int64_t step = 0);
  void add_meta_graph(std::string meta_graph_def_bytes, std::int64_t step = 0);
  /// Writes the metadata of a run, given as a value or as the bytes of a RunMetadata.
  /// @errors `invalid_argument_error` if this writer already wrote metadata with this tag.
  /// @see    contract EVT-9
  void add_run_metadata(const run_metadata& observed, std::string_view tag, std::int64_t step);
  void add_run_metadata(std::string run_metadata_bytes, std::string_view tag, std::int64_t step);

  /// Writes a summary with any values as one event.
  void add_summary(format::summary values, std::int64_t step);
  /// Writes any event. A wall_time of 0 is replaced by the current time.
  /// @errors `invalid_argument_error` if the event has more than 1 GiB.
  void add_event(format::event happened);
  /// Writes the bytes of an Event message unchanged. Does not check that the bytes are an Event message.
  /// @errors `invalid_argument_error` if there are more than 1 GiB of bytes.
  void add_event_bytes(std::span<const std::byte> event);

  /// Blocks until everything added before is written and synced. After `close`, flushes only `writer_options::metrics`.
  /// @errors The failure of a write, if it was not thrown yet. `deadline_exceeded_error` if the flush is not complete at `until`.
  ///         `not_found_error` if the file was removed while it was open.
  void flush(clock::time_point until = io::byte_queue::forever);

  /// Starts a flush of everything added before, and does not block. After `close`, flushes only `writer_options::metrics`.
  void request_flush();
  /// Like `request_flush`, but returns objects with which any thread may wait for the flush: one for the event file, and one for each of
  /// `writer_options::metrics`. A thread of `writer_options::threads` may wait, too. The objects may outlive this writer.
  [[nodiscard]] std::vector<io::byte_queue::pending_flush> start_flush();

  /// Flushes, then closes the event file. A second call flushes only `writer_options::metrics`. If the flush is not complete at `until`, the
  /// rest is written and the file is closed in the background.
  /// @errors Like `flush`, and failures of closing the file. After `deadline_exceeded_error`, a failure is passed to `on_failure` and logged.
  void close(clock::time_point until = io::byte_queue::forever);

  /// Starts a flush of everything added before. The destructor then does not wait for this flush, unless more is added after this call.
  /// Used when a session is destroyed on a thread that must not block.
  void detach();

  /// Limits the time for which `add_*` functions block while a queue is full: they block at most until `until`, also if they are blocked
  /// already. A record that is still not accepted is dropped, with one warning for each file.
  void limit_waits(clock::time_point until);

  /// Registers a callback for failures. `action` is called once for each file that fails (the event file and each of
  /// `writer_options::metrics`), on the thread that writes: a thread of the pool, or one that waits for a result of `start_flush`. If a file
  /// has failed already, `action` is called at once for this file, on the calling thread. `action` must not use this writer. Several
  /// callbacks may be registered.
  /// @lifetime `action` is kept until the writer is destroyed.
  void on_failure(std::function<void(const status&)> action);

  /// Returns true after a write of the event file or of one of `writer_options::metrics` has failed.
  /// @cost One relaxed load, and one for each of `writer_options::metrics`.
  [[nodiscard]] bool has_failed() const noexcept;
  /// Returns the failure of the event file. If there is none, returns the failure of one of `writer_options::metrics`, or nullopt.
  [[nodiscard]] std::optional<status> failure() const;
  /// Returns true after `close`, or after a failure was thrown.
  [[nodiscard]] bool is_closed() const noexcept;

  /// Returns the clock on which the deadlines of `flush` and `close` are measured.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept;
  [[nodiscard]] const std::string& directory() const noexcept;
  /// Returns the path of the event file.
  [[nodiscard]] const std::string& path() const noexcept;

private:
  struct core;
  void add_number(std::string_view tag, float value, std::int64_t step);
  void add_number(std::string_view tag, double value, std::int64_t step);
  void add_number(std::string_view tag, std::int64_t value, std::int64_t step);
  void add_number(std::string_view tag, std::uint64_t value, std::int64_t step);

  std::unique_ptr<core> core_;
};

/// Pairs of tag and number, in the order in which they are written.
using metric_list = std::vector<std::pair<std::string, double>>;

/// A range of pairs of tag and number, such as a `metric_list` or a map.
template<class T>
concept metric_range = std::ranges::input_range<const T&> && requires(std::ranges::range_reference_t<const T&> one) {
  { one.first } -> std::convertible_to<std::string_view>;
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(one.second)>>;
};

/// A `metric_range`, or a type whose function `metrics()` returns a `metric_range`.
template<class T>
concept names_metrics = metric_range<T> || requires(const T& values) {
  { values.metrics() } -> metric_range;
};

/// Writes each number as a scalar of `step`.
/// @errors Like `writer::add_scalar`.
template<names_metrics T>
void add_metrics(writer& out, const T& values, std::int64_t step) {
  if constexpr (metric_range<T>) {
    for (const auto& [tag, value] : values) { out.add_scalar(tag, value, step); }
  } else {
    add_metrics(out, values.metrics(), step);
  }
}

}  // namespace stepwell::summary
