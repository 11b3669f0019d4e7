// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/metric_writer.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/format/detail/coding.hpp"
#include "stepwell/io/file_system.hpp"
#include "stepwell/summary/detail/output.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

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

/// Opens the file, which must begin with `beginning`. Removes an incomplete line at its end.
text_log open_text_log(io::file_system& files, const std::string& path, std::string_view beginning) {
  const auto directory = io::parent_directory(path);
  value_or_throw(files.create_directories(directory));
  auto lock = value_or_throw(files.lock(path + ".lock"));
  auto file = value_or_throw(files.open(path, io::open_mode::append));
  const auto size = value_or_throw(file->size());
  const auto found = text_at(*file, 0, static_cast<std::size_t>(std::min<std::uint64_t>(size, beginning.size())));
  if (found != beginning.substr(0, found.size())) {
    throw invalid_argument_error(fmt::format("the existing file does not begin with \"{}\"; choose another name, or move the file away",
                                             beginning.substr(0, beginning.find('\n'))),
                                 path);
  }
  const auto whole = whole_lines(*file, size);
  if (whole != size) {
    value_or_throw(file->truncate(whole));
    log_warning(fmt::format("{}: removed an incomplete last line of {} bytes; the process that wrote it was killed", path, size - whole));
  }
  if (size == 0) { value_or_throw(files.sync_directory(directory)); }
  auto target = io::sink_into(std::move(file), whole);
  return {std::make_unique<locked_sink>(std::move(lock), std::move(target)), whole == 0};
}

}  // namespace

struct metric_writer::core {
  core(std::string where, const metric_writer_options& options, kind what)
      : path(std::move(where)), is_csv(what == kind::csv), files(options.files),
        log(open_text_log(*files, path, is_csv ? format::csv_metric_header : format::json_metric_beginning)),
        out(std::move(log.sink), "metric writer of " + path, options) {
    if (!is_csv || !log.is_new) { return; }
    constexpr auto header = format::csv_metric_header;
    out.append(header.size(), [&](std::byte* into) { return header.copy(reinterpret_cast<char*>(into), header.size()); });
  }

  void add(std::string_view tag, std::string_view value, std::int64_t step) {
    if (!out.accepts()) { return; }
    if (!format::is_utf8(tag)) [[unlikely]] { return add(format::to_utf8(tag), value, step); }
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(out.time()->wall_now().time_since_epoch());
    const format::metric_line line{now.count(), step, tag, value};
    const auto size = is_csv ? csv_metric_bound(line) : json_metric_bound(line);
    out.append(size,
               [&](std::byte* into) { return is_csv ? write_csv_metric({into, size}, line) : write_json_metric({into, size}, line); });
  }

  const std::string path;
  const bool is_csv;
  const std::shared_ptr<io::file_system> files;
  text_log log;
  output out;
};

metric_writer::metric_writer(std::string path, metric_writer_options options, kind what)
    : core_(std::make_unique<core>(std::move(path), checked(options), what)) {}

metric_writer::~metric_writer() {
  core_->out.end("", path(), [this](clock::time_point until) { close(until); });
}

void metric_writer::add(std::string_view tag, std::string_view value, std::int64_t step) { core_->add(tag, value, step); }
void metric_writer::add_start(std::int64_t step) { core_->add("stepwell/start", {}, step); }
void metric_writer::flush(clock::time_point until) { core_->out.flush(until); }
void metric_writer::request_flush() { core_->out.request_flush(); }
io::byte_queue::pending_flush metric_writer::start_flush() { return core_->out.start_flush(); }
void metric_writer::detach() { core_->out.detach(); }
void metric_writer::close(clock::time_point until) { core_->out.close(until); }
void metric_writer::on_failure(std::function<void(const status&)> action) { core_->out.on_failure(std::move(action)); }

bool metric_writer::has_failed() const noexcept { return core_->out.has_failed(); }
std::optional<status> metric_writer::failure() const { return core_->out.failure(); }
bool metric_writer::is_closed() const noexcept { return core_->out.is_over(); }
const std::shared_ptr<clock>& metric_writer::time() const noexcept { return core_->out.time(); }
const std::string& metric_writer::path() const noexcept { return core_->path; }

}  // namespace stepwell::summary
