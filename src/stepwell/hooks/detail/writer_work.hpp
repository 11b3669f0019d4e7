// SPDX-License-Identifier: Apache-2.0
//
// The work of a session for the writer of a hook, of event files or of metrics: reports its failure, and flushes it at the close.
#pragma once

#include "stepwell/protocol/run_context.hpp"
#include "stepwell/summary/metric_writer.hpp"
#include "stepwell/summary/writer.hpp"

#include <memory>

namespace stepwell {

/// Registers `writer` with the session, once even if several hooks share it. A failed write is thrown at the next boundary, and the session
/// flushes the writer when it closes. A checkpoint of the session is committed after the records that were added up to its step are
/// durable. If writing them fails, a warning is logged, once, and the checkpoint is committed without them. When the process is about to end,
/// a full queue blocks the session at most until `session_signals::end_of_commit_waits`; then its records are dropped, with a warning.
void watch_writer(const session_requests& session, const std::shared_ptr<summary::writer>& writer);
void watch_writer(const session_requests& session, const std::shared_ptr<summary::metric_writer>& writer);

}  // namespace stepwell
