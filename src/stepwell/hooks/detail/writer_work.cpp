// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/detail/writer_work.hpp"

#include "stepwell/base/log.hpp"

#include <fmt/format.h>
#include <atomic>
#include <functional>
#include <stop_token>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

using pending_flush = io::byte_queue::pending_flush;

std::vector<pending_flush> started_flush(summary::writer& writer) { return writer.start_flush(); }
std::vector<pending_flush> started_flush(summary::metric_writer& writer) { return {writer.start_flush()}; }

bool is_over(const result<void>& written) { return written || written.error().code != errc::deadline_exceeded; }

/// Waits for all of them. A failure does not delay the checkpoint; it is logged once.
void wait_for(const std::vector<pending_flush>& flushes, const session_signals& signals, const clock& time, std::atomic<bool>& is_logged) {
  const auto until = [&] { return deadline(time, signals.end_of_commit_waits()); };
  for (const auto& flush : flushes) {
    result<void> written;
    signals.wait_with_stop(until, [&](const deadline& end, const std::stop_token& stop) {
      written = flush.wait(end.on(flush.time()), stop);
      return is_over(written);
    });
    if (written || is_logged.exchange(true)) { continue; }
    log_warning(fmt::format("{}; checkpoints are committed without the records that this file lacks", written.error().to_string()));
  }
}

template<class Writer>
class writer_work final : public boundary_work {
public:
  writer_work(std::shared_ptr<Writer> writer, const session_requests& session)
      : writer_(std::move(writer)), session_(session), signals_(session.signals()), time_(session.time()) {
    writer_->on_failure([signals = signals_](const status&) { signals->notify(); });
  }

  void process_events() override {
    if (writer_->has_failed()) { writer_->flush(); }  // throws the failure, unless it was thrown before
  }
  void flush(const deadline& until) override {
    const auto end = [&] { return session_.end_of_waits(until).on(*writer_->time()); };
    for (const auto& flush : started_flush(*writer_)) {
      signals_->wait_with_stop(
          end, [&](clock::time_point when, const std::stop_token& stop) { return is_over(flush.wait_for_pool(when, stop)); });
    }
    writer_->flush(writer_->time()->now());  // throws the failure, or says that the flush is not complete
  }
  std::function<void()> start_flush() override {
    return [flushes = started_flush(*writer_), signals = signals_, time = time_, is_logged = is_failure_logged_] {
      wait_for(flushes, *signals, *time, *is_logged);
    };
  }

  void detach() override { writer_->detach(); }

private:
  std::shared_ptr<Writer> writer_;
  session_requests session_;
  std::shared_ptr<session_signals> signals_;
  std::shared_ptr<clock> time_;
  std::shared_ptr<std::atomic<bool>> is_failure_logged_ = std::make_shared<std::atomic<bool>>(false);
  std::stop_callback<std::function<void()>> at_process_end_{
      signals_->process_end_token(),
      [this] { writer_->limit_waits(deadline(*time_, signals_->end_of_commit_waits()).on(*writer_->time())); }};
};

template<class Writer>
void watch(const session_requests& session, const std::shared_ptr<Writer>& writer) {
  session.add_work_for(writer.get(), [&] { return std::make_shared<writer_work<Writer>>(writer, session); });
}

}  // namespace

void watch_writer(const session_requests& session, const std::shared_ptr<summary::writer>& writer) { watch(session, writer); }

void watch_writer(const session_requests& session, const std::shared_ptr<summary::metric_writer>& writer) { watch(session, writer); }

}  // namespace stepwell
