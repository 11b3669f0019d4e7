// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON incrementally, without storing the document.
#pragma once

#include <concepts>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

namespace stepwell::tool {

/// Writes one document on one line. NaN and infinities, which JSON lacks, are written as the strings "nan", "inf", "-inf". Bytes of a text
/// that are not UTF-8 are replaced.
/// @pre Calls are nested like the elements of JSON; a member is a `key` followed by a value.
class json_writer {
public:
  explicit json_writer(std::ostream& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth);
  void value(double number);
  void value(float number);
  template<std::integral Number>
  void value(Number number) {
    separate();
    out_ << +number;
  }
  void null();
  /// Writes text that is JSON already, for example the digits of a number.
  void literal(std::string_view json);

  template<class Value>
  void member(std::string_view name, const Value& content) {
    key(name);
    value(content);
  }

private:
  void separate();
  void open(char bracket);
  void close(char bracket);
  void text(std::string_view content);

  std::ostream& out_;
  std::vector<bool> has_one_;  // for each open bracket: true if it contains an element
  bool after_key_ = false;
};

/// Writes a range of numbers or texts as an array.
template<class Range>
void write_array(json_writer& json, const Range& values) {
  json.begin_array();
  for (const auto& value : values) { json.value(value); }
  json.end_array();
}

/// Writes an array with one object for each element of a range; `write_members(one)` writes the members.
template<class Range, class WriteMembers>
void write_objects(json_writer& json, const Range& all, WriteMembers write_members) {
  json.begin_array();
  for (const auto& one : all) {
    json.begin_object();
    write_members(one);
    json.end_object();
  }
  json.end_array();
}

}  // namespace stepwell::tool
