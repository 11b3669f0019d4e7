// SPDX-License-Identifier: Apache-2.0
//
// Conversion of a coroutine to an Asio initiating function for any completion token.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace stepwell::coro {

namespace detail {
namespace asio = boost::asio;

/// Returns the executor for an operation: the associated executor of its handler if there is one, or else `otherwise`.
template<class Handler>
asio::any_io_executor executor_for(const Handler& handler, const asio::any_io_executor& otherwise) {
  const auto found = asio::get_associated_executor(handler, otherwise);
  if constexpr (std::is_convertible_v<decltype(found), asio::any_io_executor>) {
    const asio::any_io_executor executor = found;
    // The handler of use_future has no executor of its own. Its associated executor is then the system executor.
    const asio::execution_context& system = asio::query(asio::system_executor(), asio::execution::context);
    const bool is_own = &asio::query(executor, asio::execution::context_as<asio::execution_context&>) != &system;
    return is_own ? executor : otherwise;
  } else {
    return otherwise;
  }
}

/// Awaits `make()` in a spawned coroutine that accepts all kinds of cancellation. Keeps `kept` alive until the coroutine ends.
template<class T, class Kept, class Make>
asio::awaitable<T> spawned(Kept kept, Make make) {
  co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
  static_cast<void>(kept);
  co_return co_await make();
}

}  // namespace detail

/// Starts the operation `make()`, which returns an `awaitable<T>`, with the completion token `token`.
/// For `use_awaitable` it returns the result of `make()` itself. For all other tokens it spawns the coroutine on the associated executor of
/// the handler, or on `otherwise()` if there is none. The completion signature is `void(std::exception_ptr, T)`, without `T` for void.
/// @lifetime For tokens other than `use_awaitable`, `kept` lives until the operation has ended. For `use_awaitable` it is not used.
template<class T, class Token, class Kept, class Otherwise, class Make>
auto initiate(Token&& token, const Kept& kept, Otherwise&& otherwise, Make make) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Token>, boost::asio::use_awaitable_t<>>) {
    return make();
  } else if constexpr (std::is_void_v<T>) {
    return boost::asio::async_initiate<Token, void(std::exception_ptr)>(
        [](auto handler, Kept held, boost::asio::any_io_executor executor, Make begin) {
          const auto where = detail::executor_for(handler, executor);
          boost::asio::co_spawn(where, detail::spawned<void>(std::move(held), std::move(begin)), std::move(handler));
        },
        token, kept, otherwise(), std::move(make));
  } else {
    static_assert(std::is_default_constructible_v<T>,
                  "stepwell: the result type of an async function must be default constructible for each completion token except "
                  "use_awaitable, because Asio default-constructs a result if there is an error");
    return boost::asio::async_initiate<Token, void(std::exception_ptr, T)>(
        [](auto handler, Kept held, boost::asio::any_io_executor executor, Make begin) {
          const auto where = detail::executor_for(handler, executor);
          boost::asio::co_spawn(where, detail::spawned<T>(std::move(held), std::move(begin)), std::move(handler));
        },
        token, kept, otherwise(), std::move(make));
  }
}

}  // namespace stepwell::coro
