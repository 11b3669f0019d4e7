// SPDX-License-Identifier: Apache-2.0
//
// The policy of a session for a source that is not seekable when a checkpoint is restored.
#pragma once

namespace stepwell {

/// The reaction to a source that cannot seek back to the restored position.
enum class unseekable_policy {
  fail,  ///< Throw `failed_precondition_error` ("cannot rewind").
  skip,  ///< Continue from the current position and log a warning. The batches in between are not repeated.
};

}  // namespace stepwell
