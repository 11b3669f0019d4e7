// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/metric_writer.hpp"

#include "stepwell/base/detail/failure_text.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/base/detail/read_double.hpp"
#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/summary/detail/output.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stepwell::summary {
namespace {

std::string text_at(io::file& file, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  text.resize(value_or_throw(file.read_at(offset, std::as_writable_bytes(std::span(text)))));
  return text;
}

/// Returns the number of bytes up to the end of the last complete line.
std::uint64_t whole_lines(io::file& file, std::uint64_t size) {
  constexpr std::uint64_t piece = 4096;
  constexpr std::uint64_t longest_line = std::uint64_t{64} << 20;
  for (std::uint64_t end = size; end > 0;) {
    if (size - end > longest_line) {
      throw data_loss_error("the last 64 MiB of the file contain no end of a line; move it away, or choose another name", file.path());
    }
    const auto begin = end - std::min(end, piece);
    const auto last = text_at(file, begin, static_cast<std::size_t>(end - begin)).rfind('\n');
    if (last != std::string::npos) { return begin + last + 1; }
    end = begin;
  }
  return 0;
}

/// Returns the offset of the first zero byte, or `size`. No line contains one: a power failure leaves zeros where the size of the file was on the
/// disk before its bytes. Searches only the end of a large file, because the system writes its older bytes first. Ignores a zero at the
/// beginning of a file that has control characters, because another program wrote such a file.
std::uint64_t first_zero(io::file& file, std::uint64_t size) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 20;
  constexpr std::uint64_t most_searched = std::uint64_t{64} << 20;
  auto found = size;
  for (auto begin = size - std::min(size, most_searched); begin < size && (found == size || found == 0); begin += piece) {
    const auto text = text_at(file, begin, static_cast<std::size_t>(std::min(piece, size - begin)));
    const auto zero = text.find('\0');
    if (found == size && zero != std::string::npos) { found = begin + zero; }
    const auto is_foreign = [](char one) { return static_cast<unsigned char>(one) < 0x20 && one != '\0' && one != '\n' && one != '\t'; };
    if (found == 0 && std::ranges::any_of(text, is_foreign)) { return size; }
  }
  return found;
}

/// A sink that keeps the lock of its file until all writing, also in the background, has ended.
class locked_sink final : public io::byte_sink {
public:
  locked_sink(std::unique_ptr<io::file_lock> lock, std::unique_ptr<io::byte_sink> target)
      : lock_(std::move(lock)), target_(std::move(target)) {}

  result<void> write(std::span<const std::byte> bytes) override { return target_->write(bytes); }
  result<void> sync() override { return target_->sync(); }
  result<void> close() override { return target_->close(); }

private:
  std::unique_ptr<io::file_lock> lock_;  // released last
  std::unique_ptr<io::byte_sink> target_;
};

/// A text file, open at its end.
struct text_log {
  std::unique_ptr<io::byte_sink> sink;  // holds the lock of the file
  bool is_new = false;                  // true if the file is empty
};

/// Opens the file, which must begin with `beginning`. Removes an incomplete line at its end, and zeros that a power failure left with all
/// bytes after them.
text_log open_text_log(io::file_system& files, const std::string& path, std::string_view beginning) {
  const auto directory = io::parent_directory(path);
  value_or_throw(files.create_directories(directory));
  auto lock = value_or_throw(files.lock(path + ".lock"));
  auto file = value_or_throw(files.open(path, io::open_mode::append));
  const auto size = value_or_throw(file->size());
  const auto text_size = first_zero(*file, size);
  const auto found = text_at(*file, 0, static_cast<std::size_t>(std::min<std::uint64_t>(text_size, beginning.size())));
  if (found != beginning.substr(0, found.size())) {
    throw invalid_argument_error(fmt::format("the existing file does not begin with \"{}\"; choose another name, or move the file away",
                                             beginning.substr(0, beginning.find('\n'))),
                                 path);
  }
  const auto whole = whole_lines(*file, text_size);
  if (whole != size) { value_or_throw(file->truncate(whole)); }
  if (text_size != size) {
    log_warning(
        fmt::format("{}: removed the last {} bytes, from the first line with a zero byte on; a power failure leaves zeros for lines that "
                    "were not on the disk",
                    path, size - whole));
  } else if (whole != size) {
    log_warning(fmt::format("{}: removed an incomplete last line of {} bytes; the process that wrote it was killed", path, size - whole));
  }
  if (size == 0) { value_or_throw(files.sync_directory(directory)); }
  auto target = io::sink_into(std::move(file), whole);
  return {std::make_unique<locked_sink>(std::move(lock), std::move(target)), whole == 0};
}

/// The form in which a number for a `metric_sink` waits in the queue. The bytes of the tag and of the number follow.
struct frame {
  std::int64_t wall_microseconds;
  std::int64_t step;
  std::uint32_t tag_size;
  std::uint32_t text_size;

  [[nodiscard]] std::size_t size() const noexcept { return sizeof(frame) + tag_size + text_size; }
};

frame frame_of(const format::metric_line& line) noexcept {
  return {line.wall_microseconds, line.step, static_cast<std::uint32_t>(line.tag.size()), static_cast<std::uint32_t>(line.value.size())};
}

std::size_t write_frame(std::byte* into, const format::metric_line& line) noexcept {
  const auto head = frame_of(line);
  std::memcpy(into, &head, sizeof head);
  line.tag.copy(reinterpret_cast<char*>(into + sizeof head), line.tag.size());
  line.value.copy(reinterpret_cast<char*>(into + sizeof head + line.tag.size()), line.value.size());
  return head.size();
}

/// Passes the numbers in a queue to a sink of the program.
class framed_sink final : public io::byte_sink {
public:
  framed_sink(std::string name, std::unique_ptr<metric_sink> target) : name_(std::move(name)), target_(std::move(target)) {}

  result<void> write(std::span<const std::byte> bytes) override {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());  // the last number may be incomplete
    std::vector<metric> numbers;
    std::size_t at = 0;
    for (frame head{}; pending_.size() - at >= sizeof head; at += head.size()) {
      std::memcpy(&head, pending_.data() + at, sizeof head);
      if (pending_.size() - at < head.size()) { break; }
      numbers.push_back(number_at(head, reinterpret_cast<const char*>(pending_.data() + at + sizeof head)));
    }
    auto written = guarded([&] {
      if (!numbers.empty()) { target_->write(numbers); }
    });
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(at));
    return written;
  }
  result<void> sync() override {
    return guarded([&] { target_->sync(); });
  }
  result<void> close() override {
    return guarded([&] { target_->close(); });
  }

private:
  static metric number_at(const frame& head, const char* text) {
    metric made{.time = clock::wall_time(std::chrono::microseconds(head.wall_microseconds)),
                .step = head.step,
                .tag = {text, head.tag_size},
                .value = 0,
                .text = {text + head.tag_size, head.text_size},
                .is_start = head.text_size == 0};
    stepwell::detail::read_double(made.text.data(), made.text.data() + made.text.size(), made.value);
    return made;
  }
  template<class Action>
  result<void> guarded(Action action) {
    try {
      action();
      return {};
    } catch (const error& failure) { return status(failure.kind(), failure.what(), name_); } catch (...) {
      return status(errc::unknown, stepwell::detail::text_of(std::current_exception()), name_);
    }
  }

  std::string name_;
  std::unique_ptr<metric_sink> target_;
  std::vector<std::byte> pending_;
};

/// @errors `invalid_argument_error` if the writer cannot have columns, or if a column is given twice.
std::vector<std::string> checked_columns(std::vector<std::string> columns, bool is_csv, const std::string& path) {
  if (!columns.empty() && !is_csv) { throw invalid_argument_error("columns are given, but only a csv_writer has columns", path); }
  for (auto& column : columns) { column = format::to_utf8(column); }
  auto sorted = columns;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw invalid_argument_error(fmt::format("the column \"{}\" is given twice", *twice), path);
  }
  return columns;
}

text_log log_into(const std::string& name, std::unique_ptr<metric_sink> sink) {
  if (!sink) { throw invalid_argument_error("sink_writer: the sink is null", name); }
  return {std::make_unique<framed_sink>(name, std::move(sink)), false};
}

}  // namespace

struct metric_writer::core {
  enum class form { csv, csv_rows, json, frames };

  core(const std::string& where, const metric_writer_options& options, kind what)
      : path(value_or_throw(io::absolute_path(where))), columns(checked_columns(options.columns, what == kind::csv, path)),
        written_as(what == kind::json_lines ? form::json
                   : columns.empty()        ? form::csv
                                            : form::csv_rows),
        files(options.file_system), log(open_text_log(*files, path, beginning())),
        out(std::move(log.sink), "metric writer of " + path, options) {
    for (auto& value : row) { value.reserve(format::number_text::max_size); }
    if (what != kind::csv || !log.is_new) { return; }
    const auto header = beginning();
    out.append(header.size(), [&](std::byte* into) { return header.copy(reinterpret_cast<char*>(into), header.size()); });
  }

  core(std::string name, std::unique_ptr<metric_sink> sink, const metric_writer_options& options)
      : path(std::move(name)), columns(checked_columns(options.columns, false, path)), written_as(form::frames), files(options.file_system),
        log(log_into(path, std::move(sink))), out(std::move(log.sink), "metric writer of " + path, options) {}

  [[nodiscard]] std::string beginning() const {
    if (written_as == form::json) { return std::string(format::json_metric_beginning); }
    return columns.empty() ? std::string(format::csv_metric_header) : format::csv_row_header(columns);
  }

  void add(std::string_view tag, std::string_view value, std::int64_t step) {
    if (!out.accepts()) { return; }
    if (!format::is_utf8(tag)) [[unlikely]] { return add(format::to_utf8(tag), value, step); }
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(out.time()->wall_now().time_since_epoch());
    const format::metric_line line{now.count(), step, tag, value};
    switch (written_as) {
      case form::csv: return append(csv_metric_bound(line), [&](std::span<std::byte> into) { return write_csv_metric(into, line); });
      case form::csv_rows: return add_to_row(line);
      case form::json: return append(json_metric_bound(line), [&](std::span<std::byte> into) { return write_json_metric(into, line); });
      case form::frames: return append(frame_of(line).size(), [&](std::span<std::byte> into) { return write_frame(into.data(), line); });
    }
  }
  /// Adds a number to the line of its step, or writes the line of a start, which has no values. Before a line begins, waits until the queue
  /// has space for it. With columns, only these lines are queued. A line that has begun can therefore be written without blocking.
  void add_to_row(const format::metric_line& line) {
    const bool is_start = line.value.empty();
    const auto column = std::ranges::find(columns, line.tag);
    stepwell::detail::mutex_lock lock(row_mutex);
    for (;;) {
      if (is_row_open && (row_step != line.step || is_start)) { complete_row(); }
      if (column == columns.end() && !is_start) { return warn_of_column(line.tag); }
      if (is_row_open ? !out.has_failed() : out.has_space(row_bound)) { break; }
      lock.unlock();  // so that a flush on another thread does not block
      if (!out.wait_for_space(row_bound)) { return; }
      lock.lock();
    }
    is_row_open = true;
    row_step = line.step;
    row_time = line.wall_microseconds;
    if (is_start) { return complete_row(); }
    row[static_cast<std::size_t>(column - columns.begin())] = line.value;
  }
  /// Writes the line that has begun. Does not block. @pre `is_row_open`.
  void write_row() STEPWELL_HOLDS(row_mutex) {
    out.append_at_once(row_bound, [&](std::byte* into) STEPWELL_UNCHECKED_LOCKS {  // called inside `append_at_once`
      return format::write_csv_row({into, row_bound}, row_time, row_step, row);
    });
    for (auto& value : row) { value.clear(); }
    is_row_open = false;
  }
  void complete_row() STEPWELL_HOLDS(row_mutex) {
    write_row();
    out.start_due_flush();
  }
  /// Writes the line that has begun, if there is one, before a flush. Does not block, and does not throw the failure of a write.
  void finish_row() {
    const stepwell::detail::mutex_lock lock(row_mutex);
    if (is_row_open && !out.is_over()) { write_row(); }
  }
  void warn_of_column(std::string_view tag) STEPWELL_HOLDS(row_mutex) {
    if (std::exchange(has_warned, true)) { return; }
    log_warning(fmt::format("{}: the tag \"{}\" is not one of the columns, so it is not written; other tags are not logged", path, tag));
  }
  template<class Write>
  void append(std::size_t size, Write write) {
    out.append(size, [&](std::byte* into) { return write(std::span<std::byte>(into, size)); });
  }

  const std::string path;
  const std::vector<std::string> columns;
  const form written_as;
  const std::size_t row_bound = format::csv_row_bound(columns.size());
  const std::shared_ptr<io::file_system> files;
  text_log log;
  output out;

  stepwell::detail::checked_mutex row_mutex;
  std::vector<std::string> row STEPWELL_GUARDED_BY(row_mutex) =
      std::vector<std::string>(columns.size());             // values of the step `row_step`; empty if there is none
  bool is_row_open STEPWELL_GUARDED_BY(row_mutex) = false;  // true: a number was added to `row`
  std::int64_t row_step STEPWELL_GUARDED_BY(row_mutex) = 0;
  std::int64_t row_time STEPWELL_GUARDED_BY(row_mutex) = 0;
  bool has_warned STEPWELL_GUARDED_BY(row_mutex) = false;
};

metric_writer::metric_writer(std::string path, metric_writer_options options, kind what)
    : core_(std::make_unique<core>(path, checked(options), what)) {}

metric_writer::metric_writer(std::string name, std::unique_ptr<metric_sink> sink, metric_writer_options options)
    : core_(std::make_unique<core>(std::move(name), std::move(sink), checked(options))) {}

metric_writer::~metric_writer() {
  core_->finish_row();  // so that `end` can tell whether a number was added after `detach`
  core_->out.end("", path(), [this](clock::time_point until) { close(until); });
}

void metric_writer::add(std::string_view tag, std::string_view value, std::int64_t step) { core_->add(tag, value, step); }
void metric_writer::add_start(std::int64_t step) { core_->add("stepwell/start", {}, step); }
void metric_writer::flush(clock::time_point until) {
  core_->finish_row();
  core_->out.flush(until);
}
void metric_writer::request_flush() {
  core_->finish_row();
  core_->out.request_flush();
}
io::byte_queue::pending_flush metric_writer::start_flush() {
  core_->finish_row();
  return core_->out.start_flush();
}
void metric_writer::detach() {
  core_->finish_row();
  core_->out.detach();
}
void metric_writer::close(clock::time_point until) {
  core_->finish_row();
  core_->out.close(until);
}
void metric_writer::limit_waits(clock::time_point until) { core_->out.limit_waits(until); }
void metric_writer::on_failure(std::function<void(const status&)> action) { core_->out.on_failure(std::move(action)); }

bool metric_writer::has_failed() const noexcept { return core_->out.has_failed(); }
std::optional<status> metric_writer::failure() const { return core_->out.failure(); }
bool metric_writer::is_closed() const noexcept { return core_->out.is_over(); }
const std::shared_ptr<clock>& metric_writer::time() const noexcept { return core_->out.time(); }
const std::string& metric_writer::path() const noexcept { return core_->path; }

}  // namespace stepwell::summary
