// SPDX-License-Identifier: Apache-2.0
//
// Checks whether the server accepts a request, and whether the request may change something.
#pragma once

#include "exchange.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace async_server {

/// The rules for requests: a list of host names and a token.
///
/// Every page that a browser on this machine shows can reach a server on a local port. The `Origin` header identifies
/// pages of other sites. The `Host` header identifies a site whose name resolves to this address (DNS rebinding). Other
/// programs and users of the machine lack the token.
class access_rules {
public:
  /// `127.0.0.1`, `localhost` and `[::1]` are always accepted as hosts, with the port of the server. `more_hosts` are accepted, too: a
  /// name without a port with each port, a name with a port only with this port.
  /// @pre `token` is not empty.
  access_rules(const std::vector<std::string>& more_hosts, std::string token);

  /// Returns the error answer for a request that must not be processed: 400 unless it has exactly one `Host`, 421 for a
  /// host that is not in the list, 403 if there are several `Origin` headers or one other than this server. Returns nothing for an accepted request.
  [[nodiscard]] std::optional<answer> refusal_of(const question& asked) const;

  /// Returns true if the request has `Authorization: Bearer TOKEN`. The time is the same for every token of the same
  /// length.
  [[nodiscard]] bool has_token(const question& asked) const noexcept;

private:
  [[nodiscard]] bool is_our_name(std::string_view host, std::uint16_t port) const;

  std::vector<std::string> more_hosts_;  // in lower case
  std::string token_;
};

/// Returns 128 random bits as 32 hexadecimal digits.
[[nodiscard]] std::string random_token();

/// Returns the first line of a file. @errors `std::runtime_error` if it cannot be read or is empty.
[[nodiscard]] std::string token_in(const std::string& path);

/// Returns an answer with the JSON member `error`, whose value is `why`.
[[nodiscard]] answer refusal(int status, std::string_view why);

}  // namespace async_server
