// SPDX-License-Identifier: Apache-2.0
//
// The wait of a formation for other processes.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/base/detail/function_ref.hpp"
#include "stepwell/base/detail/locks.hpp"
#include "stepwell/group/engine.hpp"

#include <chrono>
#include <condition_variable>
#include <string>

namespace stepwell::detail {

/// Pauses between the looks of a formation. The pauses become longer, because each look costs several messages.
class formation_wait {
public:
  /// @lifetime `how` must outlive this object.
  explicit formation_wait(const formation& how) : how_(how) {}

  /// Waits for a moment. `awaited` returns the awaited processes, for messages. Every 10 seconds, the message is a line of the log.
  /// @errors `cancelled_error` after a stop. `deadline_exceeded_error` at the end of the formation.
  void pause(function_ref<std::string()> awaited);

private:
  const formation& how_;
  clock::duration pause_ = std::chrono::microseconds(200);
  clock::time_point next_log_;
  checked_mutex mutex_;
  std::condition_variable stopped_;
};

}  // namespace stepwell::detail
