// SPDX-License-Identifier: Apache-2.0
//
// The wait of a session for the saves in flight.
#pragma once

#include "stepwell/base/clock.hpp"
#include "stepwell/checkpoint/saver.hpp"
#include "stepwell/protocol/run_context.hpp"

#include <stop_token>

namespace stepwell::detail {

/// Waits until all saves of `from` have ended, at most until `until`. If `until` never passes, a stop limits the wait.
/// @errors Those of `saver::drain`.
inline void drain_saver(saver& from, const session_requests& session, const deadline& until) {
  auto& time = *from.options().clock;
  const auto end = [&] { return session.end_of_waits(until).on(time); };
  session.signals()->wait_with_stop(end,
                                    [&](clock::time_point when, const std::stop_token& stop) { return from.wait_until_idle(when, stop); });
  from.drain(time.now());
}

}  // namespace stepwell::detail
