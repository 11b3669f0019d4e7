// SPDX-License-Identifier: Apache-2.0
#include "stepwell/hooks/writer_work.hpp"

#include <utility>

namespace stepwell {
namespace {

template<class Writer>
class writer_work final : public boundary_work {
public:
  writer_work(std::shared_ptr<Writer> writer, const std::shared_ptr<session_signals>& signals) : writer_(std::move(writer)) {
    writer_->on_failure([signals](const status&) { signals->call_attention(); });
  }

  void attend() override {
    if (writer_->has_failed()) { writer_->flush(); }  // throws it, unless it was thrown
  }
  void flush(const deadline& until) override { writer_->flush(until.on(*writer_->time())); }

private:
  std::shared_ptr<Writer> writer_;
};

template<class Writer>
void watch(const session_requests& session, const std::shared_ptr<Writer>& writer) {
  session.add_work_for(writer.get(), [&] { return std::make_shared<writer_work<Writer>>(writer, session.signals()); });
}

}  // namespace

void watch_writer(const session_requests& session, const std::shared_ptr<summary::writer>& writer) { watch(session, writer); }

void watch_writer(const session_requests& session, const std::shared_ptr<summary::metric_writer>& writer) { watch(session, writer); }

}  // namespace stepwell
