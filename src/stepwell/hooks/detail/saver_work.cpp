// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/saver_work.hpp"

#include "stepwell/base/error.hpp"

#include <exception>
#include <utility>

namespace stepwell::detail {

void saver_work::open_saver(const std::string& directory, const saver_options& options) {
  const std::lock_guard lock(reported_mutex_);
  saver_.emplace(directory, options);
}

void saver_work::drop_closed_saver() {
  if (std::exchange(is_closed_, false)) { destroy_saver(); }
}

void saver_work::destroy_saver() {
  const std::lock_guard lock(reported_mutex_);
  saver_.reset();
  buffers_.reset();
}

void saver_work::attach_to(const session_requests& session, std::size_t most_copies, std::function<void(const saved_checkpoint&)> on_saved,
                           std::function<void()> on_failure) {
  session_ = session;
  signals_ = session.signals();
  if (!buffers_) {
    const std::lock_guard lock(reported_mutex_);
    buffers_ = snapshot_pool::on_demand(most_copies, saver_->options().clock);
  }
  saver_->on_saved([on_saved = std::move(on_saved), signals = signals_](const saved_checkpoint& saved) {
    on_saved(saved);
    signals->notify();
  });
  saver_->on_failure([on_failure = std::move(on_failure), signals = signals_](const std::exception_ptr&) {
    if (on_failure) { on_failure(); }
    signals->notify();
  });
}

void saver_work::wait_ready(const deadline& until, const std::stop_token& stop) {
  if (wait_for_room(until.on(time()), stop) || stop.stop_requested()) { return; }
  throw deadline_exceeded_error(
      "this state cannot be saved because earlier saves have not ended; the disk is too slow, or does not respond", saver_->directory());
}

void saver_work::wait_for_saves(const deadline& until) {
  const auto end = [&] { return session_->end_of_waits(until).on(time()); };
  signals_->wait_with_stop(end, [&](clock::time_point when, const std::stop_token& stop) { return saver_->wait_until_idle(when, stop); });
  saver_->drain(time().now());
}

void saver_work::flush(const deadline& /*until*/) {
  is_closed_ = true;
  saver_->close();
  const std::lock_guard lock(reported_mutex_);
  buffers_.reset();
}

void saver_work::detach() {
  if (std::exchange(is_closed_, true) || !saver_) { return; }
  saver_->detach();
}

void saver_work::hold_until_released(const std::shared_ptr<void>& hold) {
  if (saver_) { saver_->hold_until_released(hold); }
}

void saver_work::report(session_metrics& all) const {
  const std::lock_guard lock(reported_mutex_);
  if (saver_) { all.under_way += saver_->backlog(); }
  if (buffers_) { all.snapshot_bytes += buffers_->held_bytes(); }
}

}  // namespace stepwell::detail
