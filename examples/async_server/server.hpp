// SPDX-License-Identifier: Apache-2.0
//
// An HTTP server on 127.0.0.1: connections, limits and timeouts. It knows nothing of training.
#pragma once

#include "exchange.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

namespace async_server {

/// A question may have 8 KiB of header and 16 KiB of body, and 10 seconds to arrive; so long may a connection stay idle, and an
/// answer be on its way. Of more connections than 100 at a time those that come last are closed at once.
///
/// Held by each of its connections, so that it is there as long as one of them.
/// @threads That of the event loop.
class server : public std::enable_shared_from_this<server> {
public:
  /// Listens from here on. Port 0: one that is free. @errors What the system says, where the port is taken.
  server(boost::asio::io_context& loop, std::uint16_t port, answering answers);

  [[nodiscard]] std::uint16_t port() const;

  /// Begins to answer.
  void start();
  /// Takes no more questions. Those that have arrived are answered; then the event loop has nothing left to do.
  void stop();

private:
  using stream = boost::beast::tcp_stream;

  boost::asio::awaitable<void> accept_all(std::shared_ptr<server> self);
  boost::asio::awaitable<void> talk(std::shared_ptr<server> self, boost::asio::ip::tcp::socket socket);
  boost::asio::awaitable<bool> answer_one(stream& connection, boost::beast::flat_buffer& unread);
  boost::asio::awaitable<void> let_finish(stream& connection);

  boost::asio::ip::tcp::acceptor acceptor_;
  answering answers_;
  std::size_t open_ = 0;
  std::set<stream*> waiting_;  // for a question, or its rest
  bool is_stopping_ = false;
};

}  // namespace async_server
