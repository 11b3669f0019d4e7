// SPDX-License-Identifier: Apache-2.0
//
// JSON output. Values are those of nlohmann-json; objects that may be large are written member by member.
#pragma once

#include "stepwell/base/detail/printable.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell::tool {

/// A JSON value. Objects keep the order of their members, and search linearly for a name.
using json = nlohmann::ordered_json;

/// Returns the value on one line. Bytes that are not UTF-8 are replaced. DEL and the control characters of C1, which JSON allows but terminals
/// interpret, are escaped like all other control characters.
[[nodiscard]] inline std::string json_text(const json& value) {
  const auto text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string escaped;
  for (std::string_view rest = text; !rest.empty();) {
    const auto plain = std::min(rest.find_first_of("\x7f\xc2"), rest.size());  // C1 is U+0080 to U+009F: the byte C2 and one more
    const auto letter = rest.substr(plain, rest.substr(plain).starts_with('\xc2') ? 2 : 1);
    escaped += rest.substr(0, plain);
    if (!letter.empty() && detail::is_control_character(letter)) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned char>(letter.back()));
    } else {
      escaped += letter;
    }
    rest.remove_prefix(plain + letter.size());
  }
  return escaped;
}

/// Returns the number with as many digits as distinguish it from others of its type. NaN and infinities, which JSON lacks, become the
/// strings "nan", "inf" and "-inf".
template<std::floating_point Number>
[[nodiscard]] json json_number(Number number) {
  if (std::isnan(number)) { return "nan"; }
  if (std::isinf(number)) { return number < 0 ? "-inf" : "inf"; }
  if (number == 0 && std::signbit(number)) { return -0.0; }
  return json::parse(fmt::format("{}", number));
}

/// Returns an array with `convert(element)` for each element of a range.
template<class Range, class Convert>
[[nodiscard]] json json_list(const Range& range, Convert convert) {
  auto made = json::array();
  for (const auto& element : range) { made.push_back(convert(element)); }
  return made;
}

/// Returns an object with the members `convert(second)` of a range of pairs with different names. Takes linear time, because it does not
/// search for the names.
template<class Range, class Convert = std::identity>
[[nodiscard]] json json_members(const Range& pairs, Convert convert = {}) {
  auto made = json::object();
  json::object_t::Container& members = made.get_ref<json::object_t&>();
  for (const auto& [name, value] : pairs) { members.emplace_back(name, convert(value)); }
  return made;
}

/// Writes one object on one line. It stores only the current member, or the current element of a list.
class json_document {
public:
  explicit json_document(std::ostream& out) : out_(out) { out_ << '{'; }

  void add(std::string_view name, const json& value) {
    separate(is_first_);
    out_ << json_text(name) << ": " << json_text(value);
  }
  /// Begins a member that is an array. Its elements follow until `end_list`.
  void begin_list(std::string_view name) {
    separate(is_first_);
    out_ << json_text(name) << ": [";
    is_first_element_ = true;
  }
  /// Adds an element that is JSON already.
  void add_element(std::string_view text) {
    separate(is_first_element_);
    out_ << text;
  }
  void end_list() { out_ << ']'; }
  /// Adds an array with `convert(element)` for each element of a range.
  template<class Range, class Convert = std::identity>
  void add_list(std::string_view name, const Range& range, Convert convert = {}) {
    begin_list(name);
    for (const auto& element : range) { add_element(json_text(convert(element))); }
    end_list();
  }
  void end() { out_ << "}\n"; }

private:
  void separate(bool& is_first) {
    if (!std::exchange(is_first, false)) { out_ << ", "; }
  }

  std::ostream& out_;
  bool is_first_ = true;
  bool is_first_element_ = true;
};

}  // namespace stepwell::tool
