// SPDX-License-Identifier: Apache-2.0
//
// What is awaited, told by its shape: who only asks needs no Asio.
#pragma once

namespace stepwell::coro {

/// Something like `boost::asio::awaitable<T>`.
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

/// What comes of awaiting a `T`; `T` itself if that is not awaited.
template<class T>
using once_awaited_t = typename detail::once_awaited<T>::type;

}  // namespace stepwell::coro
