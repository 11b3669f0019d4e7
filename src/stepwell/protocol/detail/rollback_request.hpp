// SPDX-License-Identifier: Apache-2.0
//
// A request to restore the newest checkpoint.
#pragma once

#include <functional>
#include <string>

namespace stepwell {

/// A request to restore the newest checkpoint, made by a hook that detected a bad state. The session handles the request like a failure
/// from which it recovers.
/// @see `session_requests::request_rollback`
struct rollback_request {
  /// The reason, for the log and for errors.
  std::string why;
  /// If true, the loop skips the batch of this step when it reaches the batch again. This requires a loop over a seekable source.
  /// Otherwise, the failure is thrown to the caller after the restore.
  bool skip_batch = false;
  /// Called after the restore, for example to lower the learning rate, so that the same failure does not occur again.
  std::function<void()> answer = nullptr;
};

}  // namespace stepwell
