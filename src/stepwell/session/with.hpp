// SPDX-License-Identifier: Apache-2.0
//
// The with-block: runs a function over a session and leaves by the rules of contract CLOSE-4 and CLOSE-5.
#pragma once

#include "stepwell/base/error.hpp"

#include <exception>
#include <utility>

namespace stepwell {

namespace detail {

/// Whether what a body threw is the end of its loop, and no error.
template<class Session>
[[nodiscard]] bool is_end_of_loop(const Session& session, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const out_of_range_error&) { return !session.came_from_hook(failure); } catch (const stop_iteration&) {
    return !session.came_from_hook(failure);
  } catch (...) { return false; }
}

}  // namespace detail

/// Runs `body(session)`, then closes the session. An `out_of_range_error` or `stop_iteration` out of the body is the end
/// of the loop, not an error: hooks are ended, everything closes, nothing is thrown - unless a hook threw it (D-18).
/// Any other exception: hooks hear of it, none is ended, the session is closed, the exception goes on.
/// @errors What the body throws, but for the above; what `close` throws.
template<class Session, class Body>
void with(Session& session, Body&& body) {
  try {
    std::forward<Body>(body)(session);
  } catch (...) {
    const auto failure = std::current_exception();
    if (!detail::is_end_of_loop(session, failure)) {
      session.abandon(failure);
      throw;
    }
  }
  session.close();
}

}  // namespace stepwell
