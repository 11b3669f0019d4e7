// SPDX-License-Identifier: Apache-2.0
//
// An HTTP server on 127.0.0.1: connections, limits and timeouts. It knows nothing of training.
#pragma once

#include "exchange.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

namespace async_server {

/// A request may have 8 KiB of header and 16 KiB of body, and 5 seconds to arrive. A connection may stay idle, and an answer may
/// be on its way, as long.
///
/// There are at most 100 connections, and fewer if the process may open few files (`ulimit -n`): descriptors are kept back for
/// checkpoints and event files. A new connection closes the one that has been idle longest, so that idle connections do not
/// keep others out. If all are busy, new ones wait in the queue of the system.
///
/// If the system refuses a connection, as for lack of descriptors, the server tries again after a pause that doubles up to a
/// second.
///
/// Each connection holds a reference to the server.
/// @threads That of the event loop.
class server : public std::enable_shared_from_this<server> {
public:
  /// Listens from here on. Port 0: one that is free. @errors What the system says, for example if the port is taken.
  server(boost::asio::io_context& loop, std::uint16_t port, answering answers);

  [[nodiscard]] std::uint16_t port() const;

  /// Begins to answer.
  void start();
  /// Takes no more requests. Those that have arrived are answered; then the event loop has nothing left to do.
  void stop();

private:
  using socket_type = boost::asio::ip::tcp::socket;
  using stream = boost::beast::tcp_stream;

  boost::asio::awaitable<void> accept_all(std::shared_ptr<server> self);
  boost::asio::awaitable<void> pause_accepting();
  [[nodiscard]] bool is_full() const noexcept;
  void close_longest_idle();
  boost::asio::awaitable<void> talk(std::shared_ptr<server> self, socket_type socket);
  boost::asio::awaitable<bool> answer_one(stream& connection, boost::beast::flat_buffer& unread);
  boost::asio::awaitable<void> let_finish(stream& connection);

  boost::asio::ip::tcp::acceptor acceptor_;
  answering answers_;
  const std::size_t most_connections_;
  std::size_t open_ = 0;
  std::list<stream*> idle_;  // those that wait for a request, or the rest of one; longest first
  boost::asio::steady_timer next_try_;
  std::chrono::milliseconds pause_;
  bool is_stopping_ = false;
};

}  // namespace async_server
