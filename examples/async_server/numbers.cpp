// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace async_server {
namespace {

using json = nlohmann::json;
constexpr std::string_view blanks = " \t\r\n";

bool is_all_finite(const std::vector<float>& numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

/// Returns the member "x" of `object`, which is a number or a list of numbers.
std::optional<std::vector<float>> numbers_of(const json& object) {
  if (!object.is_object() || !object.contains("x")) { return std::nullopt; }
  const json& x = object["x"];
  std::vector<float> numbers;
  for (const json& each : x.is_array() ? x : json::array({x})) {
    if (!each.is_number()) { return std::nullopt; }
    numbers.push_back(each.get<float>());
  }
  return numbers;
}

std::optional<std::vector<float>> plain_numbers(std::string_view text) {
  std::vector<float> numbers;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    if (text.empty()) { return numbers; }
    const auto word = text.substr(0, text.find_first_of(blanks));
    const json number = json::parse(word, nullptr, false);  // in any locale
    if (!number.is_number()) { return std::nullopt; }
    numbers.push_back(number.get<float>());
    text.remove_prefix(word.size());
  }
}

}  // namespace

std::optional<std::vector<float>> numbers_in(const std::string& body) {
  const bool is_json = body.find('{') != std::string::npos;
  auto numbers = is_json ? numbers_of(json::parse(body, nullptr, false)) : plain_numbers(body);
  if (numbers && (numbers->empty() || !is_all_finite(*numbers))) { numbers.reset(); }
  return numbers;
}

}  // namespace async_server
