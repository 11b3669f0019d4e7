// SPDX-License-Identifier: Apache-2.0
//
// An HTTP server with limits for connections, sizes and times. It is independent of the training.
#pragma once

#include "stepwell/board/http.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stepwell::board {

/// Returns true if `address` is an IP address of the loopback device.
/// @errors `invalid_argument_error` if it is not an IP address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// Options of an HTTP server.
struct server_options {
  std::string address = "127.0.0.1";       ///< The address on which the server listens.
  std::uint16_t port = 0;                  ///< 0: a free port.
  std::size_t max_header_bytes = 8 << 10;  ///< Maximum size of the header of a request.
  std::size_t max_body_bytes = 16 << 10;   ///< Maximum size of the body of a request.
  std::size_t max_connections = 100;       ///< Maximum number of connections.
  std::size_t max_streams = 64;            ///< Maximum number of connections that are streams of events.
  /// Maximum time until the next request of a connection has arrived completely, for the TLS handshake, and for sending an answer.
  std::chrono::milliseconds patience{5000};
  std::chrono::milliseconds stream_period{250};  ///< Time between two polls for new events of a stream.
  std::string certificate_file = {};             ///< The certificate and its chain (PEM) for HTTPS. Empty: HTTP.
  std::string private_key_file = {};             ///< The private key of the certificate (PEM), without a password.
};

/// An HTTP server.
///
/// At most `max_connections` are open, and fewer if the process may open only few files (`ulimit -n`), because the server reserves
/// descriptors for checkpoints and event files. At the limit, a new connection closes the connection that has been idle longest. If all
/// connections are busy, new ones wait: the first in the server, without an answer, the others in the queue of the operating system.
///
/// If accepting a connection fails, for example for lack of descriptors, the server retries after a pause that doubles up to one second.
///
/// Each answer has `Cache-Control: no-store`, `X-Content-Type-Options: nosniff`, `Referrer-Policy: no-referrer`,
/// `Cross-Origin-Resource-Policy: same-origin` and a `Content-Security-Policy` that permits nothing, unless the answer has such a header itself. There are no headers for other origins (CORS).
///
/// With a certificate, the server speaks TLS 1.2 and 1.3 only. A connection that does not complete the handshake counts as idle.
/// @threads The thread of the event loop.
class http_server {
public:
  /// Listens. @errors `boost::system::system_error`, for example if the port is in use. `invalid_argument_error` if the address is not an
  /// IP address, if only one of the files of the certificate is given, or if they cannot be used. `unimplemented_error` if a certificate
  /// is given and the component was built without OpenSSL (`STEPWELL_BOARD_TLS`).
  http_server(boost::asio::io_context& loop, const server_options& options, answering answers);
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;
  /// Calls `stop`. Connections that are still open keep the internal state alive until they are closed.
  ~http_server();

  /// Returns the port on which the server listens, or has listened before `stop`.
  [[nodiscard]] std::uint16_t port() const;

  /// Starts to accept connections.
  void start();
  /// Stops accepting requests. Requests that have arrived are answered, and streams send their last events; then the event loop has no work
  /// left.
  void stop();

private:
  struct core;
  std::shared_ptr<core> core_;
};

/// Returns the bytes of the answer to the first request in `bytes`, as the server would send them to a client that sends `bytes` and closes
/// its side. Empty if the server would close the connection. Of a stream, returns the header and the first events. Needs no socket.
[[nodiscard]] std::string answer_bytes(std::string_view bytes, const server_options& options, const answering& answers);

}  // namespace stepwell::board
