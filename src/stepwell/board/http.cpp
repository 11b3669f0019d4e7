// SPDX-License-Identifier: Apache-2.0
#include "stepwell/board/http.hpp"

#include "stepwell/base/error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <random>

namespace stepwell::board {
namespace {

constexpr std::string_view bearer = "Bearer ";
constexpr std::size_t most_parameters = 200;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

/// Returns the host without its port: "localhost" of "localhost:8080", "[::1]" of "[::1]:8080".
std::string_view without_port(std::string_view host) {
  const auto end_of_address = host.find(']');
  return host.substr(0, host.find(':', end_of_address == std::string_view::npos ? 0 : end_of_address));
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
  return {status, nlohmann::json{{"error", why}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

access_rules::access_rules(const std::vector<std::string>& more_hosts, std::string token) : token_(std::move(token)) {
  if (token_.empty()) { throw invalid_argument_error("the token of the server is empty; everybody would have it"); }
  for (const auto& host : more_hosts) { more_hosts_.push_back(lower_case(host)); }
}

bool access_rules::is_our_name(const request& asked) const {
  const auto given = lower_case(asked.hosts.front());
  const std::string name(without_port(given));
  const bool has_port = given == name + ":" + std::to_string(asked.port) || (asked.port == 80 && given == name);
  const auto address = asked.address.find(':') == std::string::npos ? asked.address : "[" + asked.address + "]";
  const std::array<std::string_view, 4> here{"127.0.0.1", "localhost", "[::1]", address};
  if (has_port && !name.empty() && std::ranges::find(here, name) != here.end()) { return true; }
  return std::ranges::any_of(more_hosts_, [&](const std::string& one) { return one == given || one == name; });
}

std::optional<answer> access_rules::refusal_of(const request& asked) const {
  if (asked.hosts.size() != 1) { return refusal(400, "a request needs exactly one Host"); }
  const std::string& host = asked.hosts.front();
  if (!is_our_name(asked)) { return refusal(421, "unknown Host; start the server with this name in its list of hosts to accept it"); }
  const auto is_ours = [&](const std::string& origin) { return origin == "http://" + host || origin == "https://" + host; };
  if (asked.origins.size() > 1 || !std::ranges::all_of(asked.origins, is_ours)) {
    return refusal(403, "requests from another Origin are rejected");
  }
  return std::nullopt;
}

bool access_rules::has_token(const request& asked) const noexcept {
  const std::string_view given = asked.authorization;
  return given.starts_with(bearer) && are_equal_in_constant_time(given.substr(bearer.size()), token_);
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
