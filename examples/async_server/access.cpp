// SPDX-License-Identifier: Apache-2.0
#include "access.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <random>
#include <stdexcept>
#include <utility>

namespace async_server {
namespace {

constexpr std::string_view bearer = "Bearer ";

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

}  // namespace

access_rules::access_rules(const std::vector<std::string>& more_hosts, std::string token) : token_(std::move(token)) {
  for (const auto& host : more_hosts) { more_hosts_.push_back(lower_case(host)); }
}

bool access_rules::is_our_name(std::string_view host, std::uint16_t port) const {
  constexpr std::array<std::string_view, 3> here{"127.0.0.1", "localhost", "[::1]"};
  const auto given = lower_case(host);
  const std::string name(without_port(given));
  const bool has_port = given == name + ":" + std::to_string(port) || (port == 80 && given == name);
  if (has_port && std::ranges::find(here, name) != here.end()) { return true; }
  return std::ranges::any_of(more_hosts_, [&](const std::string& one) { return one == given || one == name; });
}

std::optional<answer> access_rules::refusal_of(const question& asked) const {
  if (asked.hosts.size() != 1) { return refusal(400, "a request needs exactly one Host"); }
  const std::string& host = asked.hosts.front();
  if (!is_our_name(host, asked.port)) { return refusal(421, "unknown Host; start the server with --host NAME to accept it"); }
  const auto is_ours = [&](const std::string& origin) { return origin == "http://" + host || origin == "https://" + host; };
  if (asked.origins.size() > 1 || !std::ranges::all_of(asked.origins, is_ours)) {
    return refusal(403, "requests from another Origin are rejected");
  }
  return std::nullopt;
}

bool access_rules::has_token(const question& asked) const noexcept {
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

std::string token_in(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.empty()) { throw std::runtime_error("no token found in the first line of " + path); }
  return token;
}

answer refusal(int status, std::string_view why) { return {status, nlohmann::json{{"error", why}}.dump()}; }

}  // namespace async_server
