// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/http.hpp"

#include "stepwell/base/error.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <random>

namespace stepwell::board {
namespace {

constexpr std::size_t most_parameters = 200;
constexpr std::size_t longest_shown_host = 200;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

/// Returns the host without its port: "localhost" of "localhost:8080", "[::1]" of "[::1]:8080". Empty if the port is not a number.
std::string_view without_port(std::string_view host) {
  const auto end_of_address = host.find(']');
  const auto colon = host.find(':', end_of_address == std::string_view::npos ? 0 : end_of_address);
  if (colon == std::string_view::npos) { return host; }
  return is_number(host.substr(colon + 1)) ? host.substr(0, colon) : std::string_view();
}

/// Returns true for an IPv4 address such as "127.0.0.1", and not for a name that begins like one.
bool is_loopback_v4(std::string_view name) {
  int parts = 0;
  for (auto rest = name; parts < 5; ++parts) {
    const auto part = rest.substr(0, rest.find('.'));
    if (!is_number(part) || part.size() > 3 || (parts == 0 && part != "127")) { return false; }
    if (part.size() == rest.size()) { return parts == 3; }
    rest.remove_prefix(part.size() + 1);
  }
  return false;
}

/// Returns true if the texts are equal. The time depends only on their lengths.
bool are_equal_in_constant_time(std::string_view one, std::string_view other) noexcept {
  if (one.size() != other.size()) { return false; }
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(one[i])) ^ static_cast<unsigned char>(other[i]);
  }
  return difference == 0;
}

int digit_of(char letter) noexcept {
  if (letter >= '0' && letter <= '9') { return letter - '0'; }
  if (letter >= 'a' && letter <= 'f') { return letter - 'a' + 10; }
  if (letter >= 'A' && letter <= 'F') { return letter - 'A' + 10; }
  return -1;
}

/// Returns `text` with its escapes decoded. In a query, a plus sign is a space.
std::optional<std::string> unescaped(std::string_view text, bool is_query) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += is_query && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) { return std::nullopt; }
    const int high = digit_of(text[i + 1]);
    const int low = digit_of(text[i + 2]);
    if (high < 0 || low < 0) { return std::nullopt; }
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

}  // namespace

answer refusal(int status, std::string_view why) {
  return {status, nlohmann::json{{"error", why}}.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)};
}

access_rules::access_rules(const std::vector<std::string>& more_hosts, std::string token) : token_(std::move(token)) {
  if (token_.empty()) { throw invalid_argument_error("the token of the server is empty; everybody would have it"); }
  for (const auto& host : more_hosts) { more_hosts_.push_back(lower_case(host)); }
}

bool access_rules::is_listed(std::string_view host) const {
  const auto given = lower_case(host);
  const auto name = without_port(given);
  return !name.empty() && std::ranges::any_of(more_hosts_, [&](const std::string& one) { return one == given || one == name; });
}

bool access_rules::is_our_name(const request& asked) const {
  const auto given = lower_case(asked.hosts.front());
  const auto name = without_port(given);
  const auto address = asked.address.find(':') == std::string::npos ? asked.address : "[" + asked.address + "]";
  if (name.empty()) { return false; }
  return name == "localhost" || name == "[::1]" || is_loopback_v4(name) || name == address || is_listed(given);
}

std::optional<answer> access_rules::refusal_of(const request& asked) const {
  if (asked.hosts.size() != 1) { return refusal(400, "a request needs exactly one Host"); }
  const std::string& host = asked.hosts.front();
  if (!is_our_name(asked)) {
    return refusal(421, "the Host \"" + host.substr(0, longest_shown_host) +
                            "\" is not a name of this server; to accept it, start the server with this name in its list of hosts (stepwell "
                            "board --host NAME, board_options::hosts), or use localhost");
  }
  const auto is_ours = [&](std::string_view origin) {
    const auto scheme = origin.find("://");
    const bool is_web = scheme != std::string_view::npos && (origin.starts_with("http://") || origin.starts_with("https://"));
    const auto from = is_web ? origin.substr(scheme + 3) : std::string_view();
    return is_web && (from == host || is_listed(from));  // a proxy may have replaced the Host
  };
  if (asked.origins.size() > 1 || !std::ranges::all_of(asked.origins, is_ours)) {
    return refusal(403,
                   "the Origin is not the Host of the request, nor in the server's list of hosts; requests from other pages are rejected");
  }
  return std::nullopt;
}

bool access_rules::has_token(const request& asked) const noexcept {
  constexpr std::string_view scheme = "bearer";  // in any case (RFC 9110, 11.1)
  std::string_view given = asked.authorization;
  const auto is_same = [](char one, char other) { return std::tolower(static_cast<unsigned char>(one)) == other; };
  if (!std::ranges::equal(given.substr(0, scheme.size()), scheme, is_same)) { return false; }
  given.remove_prefix(scheme.size());
  if (!given.starts_with(' ')) { return false; }
  given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
  return are_equal_in_constant_time(given, token_);
}

std::string random_token() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::random_device bits;  // from the operating system
  std::uniform_int_distribution<std::size_t> digit(0, digits.size() - 1);
  std::string token(32, '0');
  for (char& each : token) { each = digits[digit(bits)]; }
  return token;
}

std::optional<std::string> target_parts::value(std::string_view name) const {
  const auto found = std::ranges::find(query, name, &std::pair<std::string, std::string>::first);
  return found == query.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> target_parts::values(std::string_view name) const {
  std::vector<std::string> all;
  for (const auto& [key, value] : query) {
    if (key == name) { all.push_back(value); }
  }
  return all;
}

std::optional<target_parts> parse_target(std::string_view target) {
  if (!target.starts_with('/')) { return std::nullopt; }
  const auto mark = target.find('?');
  auto path = unescaped(target.substr(0, mark), false);
  if (!path) { return std::nullopt; }
  target_parts parts{std::move(*path)};
  if (mark == std::string_view::npos) { return parts; }
  for (auto rest = target.substr(mark + 1); !rest.empty();) {
    const auto one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    if (one.empty()) { continue; }
    if (parts.query.size() == most_parameters) { return std::nullopt; }
    const auto equals = one.find('=');
    auto key = unescaped(one.substr(0, equals), true);
    auto value = equals == std::string_view::npos ? std::optional(std::string()) : unescaped(one.substr(equals + 1), true);
    if (!key || !value) { return std::nullopt; }
    parts.query.emplace_back(std::move(*key), std::move(*value));
  }
  return parts;
}

}  // namespace stepwell::board
