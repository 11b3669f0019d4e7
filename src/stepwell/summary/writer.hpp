// SPDX-License-Identifier: Apache-2.0
//
// Writes event files that TensorBoard reads: TensorFlow's FileWriter. The caller encodes into a bounded queue and goes
// on; a task on the I/O pool writes.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/run_metadata.hpp"
#include "stepwell/base/setting.hpp"
#include "stepwell/base/status.hpp"
#include "stepwell/format/events/detail/scalar_event.hpp"
#include "stepwell/format/events/hparam_value.hpp"
#include "stepwell/format/events/session_status.hpp"
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
#include <vector>

namespace stepwell::format {
struct event;
struct summary;
}  // namespace stepwell::format

namespace stepwell::summary {

class metric_writer;

struct writer_options {
  std::shared_ptr<io::file_system> files = io::posix_file_system();
  std::shared_ptr<io::pool> threads = io::pool::shared();  ///< Where the writing task runs.
  std::shared_ptr<clock> time = system_clock();
  std::size_t max_queue_bytes = std::size_t{4} << 20;  ///< A full queue blocks the caller.
  seconds_value flush_secs = 120.0;                    ///< The first event later than this after a flush flushes.
  std::string filename_suffix = {};
  format::summary_style style = format::summary_style::simple;
  /// Every `add_scalar` goes there, too, and each START of a session. They are flushed with the writer, and their failures
  /// are its own; closing them is their holders' affair. Of histograms, texts and pictures they hear nothing.
  std::vector<std::shared_ptr<metric_writer>> metrics = {};
};

/// Pixels in memory: rows from the top, channels interleaved, 8 bits each.
struct image_view {
  std::span<const std::byte> pixels;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  int channels = 1;  ///< 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA.
};

/// One event file in one directory, from construction to `close`.
///
/// Events stand in the file in the order of the calls, each with the time of its call. Plugin metadata is written on
/// the first value of a tag only. A tag that is not UTF-8 has its bad bytes replaced.
///
/// @errors  A failed write ends the writer. It is thrown once, from the next `add_*`, `flush` or `close`, also from one
///          that is blocked on the full queue, and told to `on_failure`. From then on, as after `close`, `add_*` only
///          warns and drops.
/// @threads All functions may be called from any thread, except one of `writer_options::threads`.
class writer {
public:
  /// Makes the directory and in it a new file, whose name is greater than that of every event file there; what exists
  /// is never touched. The first record is on the disk when this returns.
  /// @errors `invalid_argument_error` for a suffix with a slash; else what the file system says.
  explicit writer(std::string directory);
  explicit writer(std::string directory, writer_options options);
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;
  /// `close`; what it would throw is logged. After `detach`, or a `flush` that ran into its deadline, it does not wait: the file
  /// is finished in the background, as far as the disk allows while the process lives.
  ~writer();

  /// The writer of `directory` in this process: by its canonical path, made at the first call and whenever nobody holds
  /// one or it is closed; closed with its last holder. `options` count only when one is made.
  [[nodiscard]] static std::shared_ptr<writer> shared(const std::string& directory);
  [[nodiscard]] static std::shared_ptr<writer> shared(const std::string& directory, writer_options options);

  /// @cost Well under a microsecond, no allocation (but for the first value of a tag in tensor style).
  template<class Number>
    requires std::is_arithmetic_v<Number>
  void add_scalar(std::string_view tag, Number value, std::int64_t step) {
    add_float(tag, static_cast<float>(value), step);
  }

  /// Of the finite values; when there are others, a warning says so once a tag.
  /// Old style: TF1's buckets. Tensor style: 30 equal ones.
  /// @cost Bucketing happens here: about 10 ns a value.
  void add_histogram(std::string_view tag, std::span<const float> values, std::int64_t step);
  void add_histogram(std::string_view tag, std::span<const double> values, std::int64_t step);

  /// Markdown.
  void add_text(std::string_view tag, std::string_view text, std::int64_t step);

  /// Old style: the tag gets "/image" appended, as TF1 does.
  /// @errors `invalid_argument_error`: the pixels are no such picture.
  /// @cost   PNG is packed here, on the caller's side: milliseconds for 256 x 256 RGB.
  void add_image(std::string_view tag, const image_view& image, std::int64_t step);

  /// The settings of this run, for the hyperparameter dashboard. Once: a further call only warns.
  void add_hparams(const format::hparam_map& settings, std::string_view group_name = {});
  /// How the run ended, for the same.
  void add_hparams_end(format::hparams_status how);

  /// START with the first step to come: viewers drop what an earlier START's run had from there on.
  void add_session_log(format::session_status status, std::int64_t step, std::string_view checkpoint_path = {},
                       std::string_view message = {});

  /// The bytes of a GraphDef, MetaGraphDef.
  void add_graph(std::string graph_def_bytes, std::int64_t step = 0);
  void add_meta_graph(std::string meta_graph_def_bytes, std::int64_t step = 0);
  /// What was observed of a run, or the bytes of a RunMetadata.
  /// @errors `invalid_argument_error` when the writer had that tag before (contract EVT-9).
  void add_run_metadata(const run_metadata& observed, std::string_view tag, std::int64_t step);
  void add_run_metadata(std::string run_metadata_bytes, std::string_view tag, std::int64_t step);

  /// Any values, as one event; <stepwell/format/events/summary.hpp> has them.
  void add_summary(format::summary values, std::int64_t step);
  /// Any event, see <stepwell/format/events/event.hpp>; a wall_time of 0 becomes now.
  void add_event(format::event happened);
  /// An Event message as it is. Nothing in it is looked at.
  void add_event_bytes(std::span<const std::byte> event);

  /// Returns once all that was added before is written and synced.
  /// @errors The failure, if it was not thrown yet; `deadline_exceeded_error` when that is not so by `until`;
  ///         `not_found_error` when the file was removed under way. After `close`: does nothing.
  void flush(clock::time_point until = io::byte_queue::forever);

  /// Asks that all that was added so far be written and synced, and does not wait. After `close`: does nothing.
  void request_flush();
  /// Like `request_flush`. Returns one flush for each file: the event file, and each of `writer_options::metrics`. They may be
  /// waited for on any thread, also on one of `writer_options::threads`, and after this writer is gone.
  [[nodiscard]] std::vector<io::byte_queue::pending_flush> start_flush();

  /// `flush`, then closes the file. The second call does nothing.
  /// @errors As `flush`.
  void close(clock::time_point until = io::byte_queue::forever);

  /// Starts a flush of all that was added so far. Unless more is added, the destructor does not wait for it. For a session
  /// that is left on a thread that must not block.
  void detach();

  /// Calls `action` once with the first failure, on a thread of the pool; at once if there is one already. It must not
  /// use this writer. Several may be told. @lifetime Kept until the writer is gone.
  void on_failure(std::function<void(const status&)> action);

  /// True once a write failed. @cost One relaxed load.
  [[nodiscard]] bool has_failed() const noexcept;
  [[nodiscard]] std::optional<status> failure() const;
  [[nodiscard]] bool is_closed() const noexcept;

  /// The clock its deadlines are on.
  [[nodiscard]] const std::shared_ptr<clock>& time() const noexcept;
  [[nodiscard]] const std::string& directory() const noexcept;
  /// Of the event file.
  [[nodiscard]] const std::string& path() const noexcept;

private:
  class core;
  void add_float(std::string_view tag, float value, std::int64_t step);

  std::unique_ptr<core> core_;
};

}  // namespace stepwell::summary
