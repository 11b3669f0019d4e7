// SPDX-License-Identifier: Apache-2.0
//
// Recognition of awaitable types by their members, without an include of Asio.
#pragma once

namespace stepwell::coro {

/// A type with the members of `boost::asio::awaitable<T>`.
template<class T>
concept awaited = requires(T& one) {
  typename T::value_type;
  typename T::executor_type;
  one.await_ready();
};

namespace detail {
template<class T>
struct once_awaited {
  using type = T;
};
template<awaited T>
struct once_awaited<T> {
  using type = typename T::value_type;
};
}  // namespace detail

/// The type of the result of `co_await` on a `T`, or `T` itself if it is not awaitable.
template<class T>
using once_awaited_t = typename detail::once_awaited<T>::type;

}  // namespace stepwell::coro
