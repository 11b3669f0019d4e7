// SPDX-License-Identifier: Apache-2.0
//
// A client of a board on this machine.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace stepwell::test {

/// A connection of a client.
class http_client {
public:
  explicit http_client(std::uint16_t port) : port_(port), socket_(context_) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
  }

  void send(const std::string& text) { boost::asio::write(socket_, boost::asio::buffer(text)); }
  /// Sends a request and returns the whole answer; the server closes the connection after it.
  std::string ask(const std::string& method, const std::string& target, const std::string& headers = {}, const std::string& body = {}) {
    send(method + " " + target + " HTTP/1.1\r\nHost: localhost:" + std::to_string(port_) + "\r\nConnection: close\r\n" + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
    return rest();
  }
  /// Returns everything that the server sends before it closes the connection.
  std::string rest() {
    boost::system::error_code failure;
    boost::asio::read(socket_, boost::asio::dynamic_buffer(text_), failure);
    return std::exchange(text_, {});
  }
  /// Returns the text up to the end of `mark`.
  std::string until(const std::string& mark) {
    const auto size = boost::asio::read_until(socket_, boost::asio::dynamic_buffer(text_), mark);
    auto found = text_.substr(0, size);
    text_.erase(0, size);
    return found;
  }

private:
  boost::asio::io_context context_;
  std::uint16_t port_;
  boost::asio::ip::tcp::socket socket_;
  std::string text_;
};

}  // namespace stepwell::test
