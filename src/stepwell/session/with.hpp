// SPDX-License-Identifier: Apache-2.0
//
// The with-block: runs a function over a session, and closes or abandons the session afterwards.
// @see contract CLOSE-4, CLOSE-5
#pragma once

#include "stepwell/base/error.hpp"

#include <exception>
#include <utility>

namespace stepwell {

namespace detail {

/// Returns true if `failure`, thrown by a body, is the end of its loop and not an error.
template<class Session>
[[nodiscard]] bool is_end_of_loop(const Session& session, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const out_of_range_error&) { return !session.came_from_hook(failure); } catch (const stop_iteration&) {
    return !session.came_from_hook(failure);
  } catch (...) { return false; }
}

}  // namespace detail

/// Runs `body(session)`, then closes the session. An `out_of_range_error` or `stop_iteration` thrown by the body is the end of the loop,
/// not an error: `end` of the hooks is called, the session is closed, and nothing is thrown, unless a hook threw the exception. After any
/// other exception, `on_error` of the hooks is called instead of `end`, the session is closed, and the exception is rethrown.
/// @errors Exceptions of the body that do not end the loop normally, and those of `close`.
/// @see contract CLOSE-4, CLOSE-5, D-18
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
