// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <charconv>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace async_server {
namespace {

template<class Number>
bool read(std::string_view text, Number& into) {
  const auto* end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, into);
  return failure == std::errc() && stopped == end && into >= 0;
}

}  // namespace

std::optional<options> parse_options(int count, const char* const* arguments) {
  options parsed;
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) { return std::nullopt; }
    const std::string_view name = arguments[i];
    const std::string_view value = arguments[i + 1];
    if (name == "--run-dir" && !value.empty()) {
      parsed.run_dir = value;
    } else if (name == "--host" && !value.empty()) {
      parsed.hosts.emplace_back(value);
    } else if (name == "--token-file" && !value.empty()) {
      parsed.token_file = value;
    } else if (name == "--port" && read(value, parsed.port)) {
    } else if (name == "--steps" && read(value, parsed.steps)) {
    } else {
      return std::nullopt;
    }
  }
  return parsed;
}

std::string token_in(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!std::getline(file, token) || token.empty()) { throw std::runtime_error("no token found in the first line of " + path); }
  return token;
}

}  // namespace async_server
