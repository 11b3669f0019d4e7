// SPDX-License-Identifier: Apache-2.0
//
// What a session does for the writer of a hook, of event files or of metrics: hears of its failure, and flushes it when it
// closes.
#pragma once

#include "stepwell/base/status.hpp"
#include "stepwell/session/boundary.hpp"
#include "stepwell/session/session_signals.hpp"

#include <memory>
#include <utility>

namespace stepwell {

/// A failed write comes out at the next boundary, once, however many hooks share the writer.
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

/// The session hears of failures of `writer` and flushes it as it closes; once, however many hooks share it.
template<class Writer>
void watch_writer(const auto& session, const std::shared_ptr<Writer>& writer) {
  session.add_work_for(writer.get(), [&] { return std::make_shared<writer_work<Writer>>(writer, session.signals()); });
}

}  // namespace stepwell
