// SPDX-License-Identifier: Apache-2.0
//
// Writers for the numbers of a run. They write lines of text (CSV or JSON lines), or pass the numbers to a destination that the program
// provides, such as a database. They are an alternative to event files for users without TensorBoard. The caller puts a number into a
// bounded queue; a task on the I/O pool writes the number.
#pragma once

#include "stepwell/base/cadence.hpp"
#include "stepwell/base/clock.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/format/detail/metric_line.hpp"
#include "stepwell/io/detail/byte_queue.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stepwell::summary {

/// Options of a metric writer.
struct metric_writer_options {
  std::shared_ptr<io::file_system> file_system = io::posix_file_system();
  std::shared_ptr<io::pool> threads = io::pool::shared();  ///< Pool that runs the writing task.
  std::shared_ptr<stepwell::clock> clock = system_clock();
  std::size_t max_queue_bytes = std::size_t{1} << 20;  ///< Size of the queue, above zero. While the queue is full, adding a number blocks.
  /// Minimum time between two flushes that the writer starts by itself. The first number that is added after this time causes a flush.
  /// Without a further number, nothing is flushed. 0: each number causes a flush. With `columns`, only a complete line causes a flush, so
  /// that these flushes split no line.
  seconds_value flush_secs = 10.0;
  /// For a `csv_writer`: tags that have a column each. The writer then writes one line for each step, with the values of these tags. It
  /// does not write other tags. Empty: each line has one number and its tag.
  std::vector<std::string> columns = {};
};

/// One number for a `metric_sink`.
/// @lifetime Valid during the call of `metric_sink::write`.
struct metric {
  clock::wall_time time;  ///< Time at which the number was added.
  std::int64_t step = 0;
  std::string_view tag;
  double value = 0;
  std::string_view text;  ///< The number as text. Unlike `value`, it is exact for large integers, too.
  /// True: this object is not a number, but marks the start of a session. All earlier numbers whose step is `step` or later are obsolete.
  /// `value` is 0, and `text` is empty.
  bool is_start = false;
};

/// A destination of numbers that the program provides, such as a database, a socket or another library.
/// @threads One call at a time. The calls may block. `write` and `sync` run on threads of `metric_writer_options::threads`, or on a thread
///          that waits for the result of `start_flush`, such as the one that commits a checkpoint. `close` runs on the thread that closes or
///          destroys the writer. If this thread does not wait for the last numbers, `close` runs where these are written.
class metric_sink {
public:
  virtual ~metric_sink() = default;

  /// Writes numbers, in the order in which they were added. If `write` throws, the writer has failed, and `write` is not called again.
  virtual void write(std::span<const metric> numbers) = 0;
  /// Makes all numbers durable that were written so far. Called at each flush.
  virtual void sync() {}
  /// Called once, after the last `write` and `sync`, also if one of them has thrown.
  virtual void close() {}
};

/// The common base of `csv_writer`, `jsonl_writer` and `sink_writer`. `csv_writer` and `jsonl_writer` write a text file with one line for
/// each number. A line contains the time, the step, the tag and the value.
///
/// An existing file is continued, so one file contains a run with all its restarts. If a killed process has left an incomplete line at the
/// end of the file, this line is removed with a warning. Complete lines are never removed. After each start of the program and after each
/// recovery, the session writes a line with the tag `stepwell/start` before its first number. This line has the step of that number, and no
/// value. Earlier lines with this step or a later step are obsolete, as in event files. With `metric_writer_options::columns`, lines have no
/// tag: the line of a start is the one without any value.
///
/// @errors  A failed write ends the writer. The failure is passed to `on_failure` and thrown once, by the next `add_*`, `flush` or `close`.
///          Later calls of `add_*`, and calls after `close`, drop their values with a warning.
/// @threads All functions may be called from any thread, except a thread of `metric_writer_options::threads`. Such a thread may wait for the
///          result of `start_flush`.
/// @see     decision D-5
class metric_writer {
public:
  metric_writer(const metric_writer&) = delete;
  metric_writer& operator=(const metric_writer&) = delete;

  /// Writes one number. Integers are written exactly. Other numbers are written with the fewest digits from which the same number can be
  /// read. Bytes of `tag` that are not valid UTF-8 are replaced. Blocks while the queue is full.
  /// @cost Well under a microsecond, unless the queue is full. No allocation, except for a tag that is not UTF-8.
  template<class Number>
    requires std::is_arithmetic_v<Number>
  void add_scalar(std::string_view tag, Number value, std::int64_t step) {
    add(tag, format::number_text(value).view(), step);
  }

  /// Writes a line with the tag `stepwell/start`. This line makes earlier lines with the step `step` or a later step obsolete. Blocks while
  /// the queue is full.
  void add_start(std::int64_t step);

  /// Blocks until everything added before is written and synced. Does nothing after `close`.
  /// @errors The failure of a write, if it was not thrown yet. `deadline_exceeded_error` if the flush is not complete at `until`.
  void flush(clock::time_point until = io::byte_queue::forever);
  /// Starts a flush of everything added before, and does not block.
  void request_flush();
  /// Like `request_flush`, but returns an object with which any thread may wait for the flush.
  [[nodiscard]] io::byte_queue::pending_flush start_flush();
  /// Flushes, then closes the file. A second call does nothing. If the flush is not complete at `until`, the rest is written and the file is
  /// closed in the background. `until` does not limit the time of closing the file, or of `metric_sink::close`.
  /// @errors Like `flush`, and failures of closing the file. After `deadline_exceeded_error`, a failure is passed to `on_failure` and logged.
  void close(clock::time_point until = io::byte_queue::forever);

  /// Starts a flush of everything added before. The destructor then does not wait for this flush, unless more is added after this call.
  void detach();

  /// Limits the time for which `add_*` functions block while the queue is full: they block at most until `until`, also if they are blocked
  /// already. A record that is still not accepted is dropped, with one warning.
  void limit_waits(clock::time_point until);

  /// Registers a callback for the first failure. `action` is called once, on the thread that writes: a thread of the pool, or one that waits
  /// for the result of `start_flush`. If the failure has happened already, `action` is called at once, on the calling thread. `action` must
  /// not use this writer. Several callbacks may be registered.
  void on_failure(std::function<void(const status&)> action);

  /// Returns true after a write has failed.
  /// @cost One relaxed load.
  [[nodiscard]] bool has_failed() const noexcept;
  /// Returns the first failure, if any.
  [[nodiscard]] std::optional<status> failure() const;
  /// Returns true after `close`, or after a failure was thrown.
  [[nodiscard]] bool is_closed() const noexcept;

  /// Returns the clock on which the deadlines of `flush` and `close` are measured.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept;

protected:
  enum class kind { csv, json_lines };
  metric_writer(std::string path, metric_writer_options options, kind what);
  metric_writer(std::string name, std::unique_ptr<metric_sink> sink, metric_writer_options options);
  /// Calls `close`, and logs its failure. Does not wait after `detach`, or if the last `flush` has reached its deadline.
  ~metric_writer();

private:
  struct core;
  void add(std::string_view tag, std::string_view value, std::int64_t step);

  std::unique_ptr<core> core_;
};

/// A writer of CSV files with the columns `wall_time,step,tag,value` and a header line: see `format::write_csv_metric`. Values that are not
/// finite are written as nan, inf and -inf. Lines end with a line feed only. With `metric_writer_options::columns`, the columns are
/// `wall_time,step` and these tags: see `format::write_csv_row`. The line of a step is complete when a number of another step is added, and
/// at each call of `flush`, `request_flush`, `start_flush`, `detach` and `close`. Numbers of the same step that are added after such a call
/// are in a further line. The flushes that the writer starts by itself (`flush_secs`) write complete lines only.
class csv_writer final : public metric_writer {
public:
  /// Opens the file. Creates the file and its directory if they do not exist. Keeps the file `path` + ".lock" locked until all writing has
  /// ended.
  /// @errors `invalid_argument_error` if the file exists and does not begin like a file of this kind; the file is then unchanged. Also
  ///         `invalid_argument_error` for an invalid option, and for a column that is given twice. `data_loss_error` if the last 64 MiB of
  ///         the file contain no end of a line. `failed_precondition_error` naming the process that already writes the file. Other failures
  ///         of the file system.
  explicit csv_writer(std::string path, metric_writer_options options = {})
      : metric_writer(std::move(path), std::move(options), kind::csv) {}
};

/// A writer of JSON lines, each an object `{"wall_time":...,"step":...,"tag":...,"value":...}`: see `format::write_json_metric`.
/// Values that are not finite are written as the strings "NaN", "Infinity" and "-Infinity".
class jsonl_writer final : public metric_writer {
public:
  /// Opens the file, like `csv_writer`.
  /// @errors Like `csv_writer`. `invalid_argument_error` if `columns` are given.
  explicit jsonl_writer(std::string path, metric_writer_options options = {})
      : metric_writer(std::move(path), std::move(options), kind::json_lines) {}
};

/// A writer for a `metric_sink`: `std::make_shared<sink_writer>("results.db", std::make_unique<my_database>(...))`. Like a `csv_writer`, it
/// can be an element of `training_options::metrics` and `summary_saver_options::metrics`.
class sink_writer final : public metric_writer {
public:
  /// `name` is used in messages, and returned by `path`.
  /// @errors `invalid_argument_error` if `sink` is null, `columns` are given, `max_queue_bytes` is 0, or `flush_secs` is negative.
  sink_writer(std::string name, std::unique_ptr<metric_sink> sink, metric_writer_options options = {})
      : metric_writer(std::move(name), std::move(sink), std::move(options)) {}
};

}  // namespace stepwell::summary
