// SPDX-License-Identifier: Apache-2.0
//
// What a session does for the writer of a hook, of event files or of metrics: hears of its failure, and flushes it when it
// closes.
#pragma once

#include "stepwell/hook/run_context.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"

#include <memory>

namespace stepwell {

/// A failed write comes out at the next boundary, and the session flushes the writer as it closes; once, however many hooks
/// share it. A checkpoint of the session is committed after the records that were added up to its step are durable, unless
/// writing them fails; then a warning is logged, once, and the checkpoint is committed without them.
void watch_writer(const session_requests& session, const std::shared_ptr<summary::writer>& writer);
void watch_writer(const session_requests& session, const std::shared_ptr<summary::metric_writer>& writer);

}  // namespace stepwell
