// SPDX-License-Identifier: Apache-2.0
//
// An HTTP server on 127.0.0.1 with limits for connections, sizes and times. It is independent of the training.
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

/// A request is limited to 8 KiB of header, 16 KiB of body, and 5 seconds to arrive. The same time limit applies to an
/// idle connection and to the sending of an answer.
///
/// The server accepts at most 100 connections, and fewer if the process may open only few files (`ulimit -n`), because
/// it reserves descriptors for checkpoints and event files. At the limit, a new connection closes the connection that
/// has been idle longest. If all connections are busy, new ones wait in the queue of the operating system.
///
/// If accepting a connection fails, for example for lack of descriptors, the server retries after a pause that doubles
/// up to one second.
///
/// Each connection holds a reference to the server.
/// @threads The thread of the event loop.
class server : public std::enable_shared_from_this<server> {
public:
  /// Listens on `port`; 0 selects a free port. @errors The operating system's error, for example if the port is in use.
  server(boost::asio::io_context& loop, std::uint16_t port, answering answers);

  [[nodiscard]] std::uint16_t port() const;

  /// Starts to accept connections.
  void start();
  /// Stops accepting requests. Requests that have arrived are answered; then the event loop has no work left.
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
  std::list<stream*> idle_;  // connections that wait for a request or its rest; the longest idle first
  boost::asio::steady_timer next_try_;
  std::chrono::milliseconds pause_;
  bool is_stopping_ = false;
};

}  // namespace async_server
