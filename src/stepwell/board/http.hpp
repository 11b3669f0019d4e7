// SPDX-License-Identifier: Apache-2.0
//
// Requests and answers of an HTTP server, independent of sockets, and the rules that decide whether a request is processed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepwell::board {

/// A request.
struct request {
  std::string method;  ///< "GET"
  std::string target;  ///< The path with the query, as it was sent: "/status?run=a".
  std::string body = {};
  std::string address = {};               ///< Address on which the request arrived: "127.0.0.1".
  std::uint16_t port = 0;                 ///< Port on which the request arrived.
  std::vector<std::string> hosts = {};    ///< Each `Host` header.
  std::vector<std::string> origins = {};  ///< Each `Origin` header.
  std::string authorization = {};         ///< The `Authorization` header. Empty if there is none.
  std::string content_type = {};          ///< The `Content-Type` header. Empty if there is none.
  std::string last_event_id = {};         ///< The `Last-Event-ID` header. Empty if there is none.
};

/// The events of a stream that does not end by itself.
/// @threads The thread of the server.
class event_source {
public:
  virtual ~event_source() = default;
  /// Returns the text that was not returned yet, in the format of server-sent events. Empty if there is none. Returns nothing if the stream
  /// ends.
  [[nodiscard]] virtual std::optional<std::string> next() = 0;
};

/// An answer.
struct answer {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< More headers. They replace those that the server adds by itself.
  std::shared_ptr<event_source> events = nullptr;                 ///< Not null: the answer is this stream, without `body`.
};

/// A function that returns the answer without waiting. The server calls it on its thread, and answers an exception with 500.
using answering = std::function<answer(const request&)>;

/// Returns an answer with the JSON member `error`, whose value is `why`.
[[nodiscard]] answer refusal(int status, std::string_view why);

/// The rules for requests: a list of host names and a token.
///
/// Every page that a browser on this machine shows can reach a server on a local port. The `Origin` header identifies pages of other
/// sites. The `Host` header identifies a site whose name resolves to this address (DNS rebinding). Other programs and users of the machine
/// lack the token.
class access_rules {
public:
  /// `localhost`, the loopback addresses and the address on which a request arrives are always accepted as hosts. The port does not matter,
  /// because a tunnel or a container has another one. `more_hosts` are accepted, too. A name without a port is accepted with every port. A
  /// name with a port is accepted with this port only.
  /// @errors `invalid_argument_error` if `token` is empty.
  access_rules(const std::vector<std::string>& more_hosts, std::string token);

  /// Returns the error answer for a request that must not be processed: 400 unless it has exactly one `Host`, 421 for a host that is not in
  /// the list, 403 if there are several `Origin` headers or one that is neither the host of the request nor in `more_hosts`. Returns nothing for an
  /// accepted request.
  [[nodiscard]] std::optional<answer> refusal_of(const request& asked) const;

  /// Returns true if the request has `Authorization: Bearer TOKEN`. `Bearer` may have any case. Takes the same time for every token of the same length.
  [[nodiscard]] bool has_token(const request& asked) const noexcept;
  [[nodiscard]] const std::string& token() const noexcept { return token_; }

private:
  [[nodiscard]] bool is_our_name(const request& asked) const;
  [[nodiscard]] bool is_listed(std::string_view host) const;

  std::vector<std::string> more_hosts_;  // in lower case
  std::string token_;
};

/// Returns 128 random bits of the operating system as 32 hexadecimal digits.
[[nodiscard]] std::string random_token();

/// The path and the query of a target, decoded.
struct target_parts {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query = {};

  /// Returns the value of the first parameter `name`. Empty if there is none.
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const;
  /// Returns the values of all parameters `name`.
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
};

/// Returns the parts of a target such as "/api/curve?run=a%20b&tag=loss". Returns nothing if the target does not begin with a slash, if an
/// escape is not valid, or if there are more than 200 parameters.
[[nodiscard]] std::optional<target_parts> parse_target(std::string_view target);

}  // namespace stepwell::board
