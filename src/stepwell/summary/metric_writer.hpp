// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a run as lines of text, for those who read no event files: CSV and JSON lines. Written as event files are:
// the caller leaves a line in a bounded queue, a task on the I/O pool writes it.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/base/status.hpp"
#include "stepwell/format/text/detail/metric_line.hpp"
#include "stepwell/io/detail/byte_queue.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/io/pool.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace stepwell::summary {

struct metric_writer_options {
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::shared_ptr<io::pool> threads = io::pool::shared();  ///< Where the writing task runs.
  std::shared_ptr<clock> time = system_clock();
  std::size_t max_queue_bytes = std::size_t{1} << 20;  ///< A full queue blocks the caller.
  seconds_value flush_secs = 10.0;                     ///< The first line later than this after a flush flushes.
};

/// One text file, a line a number: the time, the step, the tag, the value. What `csv_writer` and `jsonl_writer` share.
///
/// A file that is there is gone on with, so one file holds a run however often it was started again. Half a line at its end,
/// left by a kill, is cut off with a warning. Lines are never taken back: before the first number after a restart or a
/// recovery stands one of the tag `stepwell/start`, without a value, whose step is the first to come; what stands before it
/// with that step or a later one did not happen, as in event files (D-5).
///
/// @errors  As of `writer`: a failed write ends the writer; it is thrown once, from the next `add_*`, `flush` or `close`, and
///          told to `on_failure`. From then on, as after `close`, `add_*` only warns and drops.
/// @threads All functions may be called from any thread, except one of `metric_writer_options::threads`.
class metric_writer {
public:
  metric_writer(const metric_writer&) = delete;
  metric_writer& operator=(const metric_writer&) = delete;

  /// Integers exactly; others with as few digits as read back as the same number.
  /// @cost Well under a microsecond, no allocation (but for a tag that is not UTF-8: its bad bytes are replaced).
  template<class Number>
    requires std::is_arithmetic_v<Number>
  void add_scalar(std::string_view tag, Number value, std::int64_t step) {
    add(tag, format::number_text(static_cast<spelt<Number>>(value)).view(), step);
  }

  /// What stands there with this step or a later one did not happen.
  void add_start(std::int64_t step);

  /// Returns once all that was added before is written and synced.
  /// @errors The failure, if it was not thrown yet; `deadline_exceeded_error` when that is not so by `until`. After `close`:
  ///         does nothing.
  void flush(clock::time_point until = io::byte_queue::forever);
  /// Asks that all that was added so far be written and synced, and does not wait.
  void request_flush();
  /// Like `request_flush`. The result may be waited for on any thread.
  [[nodiscard]] io::byte_queue::pending_flush start_flush();
  /// `flush`, then closes the file. The second call does nothing.
  void close(clock::time_point until = io::byte_queue::forever);

  /// Starts a flush of all that was added so far. Unless more is added, the destructor does not wait for it.
  void detach();

  /// Calls `action` once with the first failure, on a thread of the pool; at once if there is one already. It must not
  /// use this writer. Several may be told.
  void on_failure(std::function<void(const status&)> action);

  /// True once a write failed. @cost One relaxed load.
  [[nodiscard]] bool has_failed() const noexcept;
  [[nodiscard]] std::optional<status> failure() const;
  [[nodiscard]] bool is_closed() const noexcept;

  /// The clock its deadlines are on.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept;
  [[nodiscard]] const std::string& path() const noexcept;

protected:
  enum class kind { csv, json_lines };
  metric_writer(std::string path, metric_writer_options options, kind what);
  /// `close`; what it would throw is logged. After `detach`, or a `flush` that ran into its deadline, it does not wait.
  ~metric_writer();

private:
  class core;
  template<class Number>
  using spelt = std::conditional_t<std::is_same_v<Number, float>, float,
                                   std::conditional_t<std::is_floating_point_v<Number>, double,
                                                      std::conditional_t<std::is_unsigned_v<Number>, std::uint64_t, std::int64_t>>>;
  void add(std::string_view tag, std::string_view value, std::int64_t step);

  std::unique_ptr<core> core_;
};

/// `wall_time,step,tag,value`, and a line with these names at the beginning: see `format::write_csv_metric`. Values that are
/// not finite are nan, inf and -inf. Lines end with a line feed alone.
class csv_writer final : public metric_writer {
public:
  /// Makes the directory and the file where they are not there; holds `path` + ".lock" while it lives.
  /// @errors `invalid_argument_error` where a file is there that does not begin as one of these; it is not touched.
  ///         `failed_precondition_error` naming who writes there already; else what the file system says.
  explicit csv_writer(std::string path, metric_writer_options options = {})
      : metric_writer(std::move(path), std::move(options), kind::csv) {}
};

/// An object a line, `{"wall_time":...,"step":...,"tag":...,"value":...}`: see `format::write_json_metric`. Values that are
/// not finite are the strings "NaN", "Infinity" and "-Infinity".
class jsonl_writer final : public metric_writer {
public:
  /// @errors As of `csv_writer`.
  explicit jsonl_writer(std::string path, metric_writer_options options = {})
      : metric_writer(std::move(path), std::move(options), kind::json_lines) {}
};

}  // namespace stepwell::summary
