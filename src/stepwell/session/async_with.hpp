// SPDX-License-Identifier: Apache-2.0
//
// The with-block of an asynchronous session.
#pragma once

#include "stepwell/session/async_session.hpp"
#include "stepwell/session/with.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <utility>

namespace stepwell {

/// Awaits `body(session)`, then closes the session, as `with` does. An `out_of_range_error` or `stop_iteration` thrown by the body is the
/// end of the loop, unless a hook threw it. After any other exception, including a cancellation, the session is abandoned, and the
/// exception is rethrown when the directory is released. (A session whose start failed may keep its directory locked until it is
/// destroyed.)
///
///     auto train = [&](auto& session) -> asio::awaitable<void> { ... };  // a named object, because of g++ 12
///     co_await async_with(session, train);
///
/// @errors Exceptions of the body that do not end the loop normally, and those of `async_close`.
/// @cancel Forwarded to the body. Closing and abandoning run to their end.
/// @lifetime `session` and `body` must outlive the operation.
/// @see D-18
template<class Session, class Body>
boost::asio::awaitable<void> async_with(Session& session, Body& body) {
  std::exception_ptr failure;
  try {
    co_await body(session);
  } catch (...) { failure = std::current_exception(); }
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);  // the check would throw before the close
  const bool is_error = failure && !detail::is_end_of_loop(session, failure);
  std::exception_ptr of_close;
  const auto here = co_await boost::asio::this_coro::executor;
  auto deaf = boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(), boost::asio::use_awaitable);
  try {
    if (is_error) {
      co_await boost::asio::co_spawn(here, session.async_abandon(failure), deaf);
    } else {
      co_await boost::asio::co_spawn(here, session.async_close(), deaf);
    }
  } catch (...) { of_close = std::current_exception(); }
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  if (is_error) { std::rethrow_exception(failure); }
  if (of_close) { std::rethrow_exception(of_close); }
}

}  // namespace stepwell
