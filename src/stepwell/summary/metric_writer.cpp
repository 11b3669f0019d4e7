// SPDX-License-Identifier: Apache-2.0
#include "stepwell/summary/metric_writer.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/base/log.hpp"
#include "stepwell/format/text/detail/utf8.hpp"
#include "stepwell/summary/detail/output.hpp"
#include "stepwell/summary/detail/text_log.hpp"

#include <fmt/format.h>
#include <chrono>
#include <exception>
#include <span>
#include <utility>

namespace stepwell::summary {
namespace {

constexpr std::string_view start_tag = "stepwell/start";

}  // namespace

class metric_writer::core {
public:
  core(std::string path, const metric_writer_options& options, kind what)
      : path_(std::move(path)), is_csv_(what == kind::csv), files_(options.files),
        log_(value_or_throw(open_text_log(*files_, path_, is_csv_ ? format::csv_metric_header : format::json_metric_beginning))),
        output_(std::move(log_.sink), output_options_of("metric writer of " + path_, options)) {
    if (is_csv_ && log_.is_new) { put(format::csv_metric_header); }
  }

  void add(std::string_view tag, std::string_view value, std::int64_t step) {
    if (!output_.accepts()) { return; }
    if (!format::is_utf8(tag)) [[unlikely]] { return add(format::to_utf8(tag), value, step); }
    const format::metric_line line{now_microseconds(), step, tag, value};
    const auto size = is_csv_ ? csv_metric_bound(line) : json_metric_bound(line);
    output_.append(size,
                   [&](std::byte* into) { return is_csv_ ? write_csv_metric({into, size}, line) : write_json_metric({into, size}, line); });
  }

  [[nodiscard]] output& out() noexcept { return output_; }
  [[nodiscard]] const output& out() const noexcept { return output_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
  void put(std::string_view text) {
    output_.append(text.size(), [&](std::byte* into) {
      text.copy(reinterpret_cast<char*>(into), text.size());
      return text.size();
    });
  }
  [[nodiscard]] std::int64_t now_microseconds() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(output_.time()->wall_now().time_since_epoch()).count();
  }

  std::string path_;
  bool is_csv_;
  std::shared_ptr<io::file_system> files_;
  text_log log_;
  output output_;
};

metric_writer::metric_writer(std::string path, metric_writer_options options, kind what)
    : core_(std::make_unique<core>(std::move(path), options, what)) {}

metric_writer::~metric_writer() {
  try {
    if (core_->out().is_detached()) {
      core_->out().close_detached();
    } else {
      close(core_->out().last_deadline());
    }
  } catch (const std::exception& failure) { log_error(fmt::format("closing {}: {}", path(), failure.what())); }
}

void metric_writer::add(std::string_view tag, std::string_view value, std::int64_t step) { core_->add(tag, value, step); }
void metric_writer::add_start(std::int64_t step) { core_->add(start_tag, {}, step); }
void metric_writer::flush(clock::time_point until) { core_->out().flush(until); }
void metric_writer::request_flush() { core_->out().request_flush(); }
io::byte_queue::pending_flush metric_writer::start_flush() { return core_->out().start_flush(); }
void metric_writer::detach() { core_->out().detach(); }
void metric_writer::close(clock::time_point until) { core_->out().close(until); }
void metric_writer::on_failure(std::function<void(const status&)> action) { core_->out().listeners().add(std::move(action)); }

bool metric_writer::has_failed() const noexcept { return core_->out().queue().has_failed(); }
std::optional<status> metric_writer::failure() const { return core_->out().queue().failure(); }
bool metric_writer::is_closed() const noexcept { return core_->out().is_over(); }
const std::shared_ptr<clock>& metric_writer::time() const noexcept { return core_->out().time(); }
const std::string& metric_writer::path() const noexcept { return core_->path(); }

}  // namespace stepwell::summary
