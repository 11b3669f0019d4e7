// SPDX-License-Identifier: Apache-2.0
#include "tool/json_writer.hpp"

#include "stepwell/base/detail/printable.hpp"
#include "stepwell/format/text/detail/utf8.hpp"

#include <fmt/format.h>
#include <cmath>
#include <string>

namespace stepwell::tool {
namespace {

template<class Number>
std::string number_json(Number number) {
  if (std::isnan(number)) { return "\"nan\""; }
  if (std::isinf(number)) { return number < 0 ? "\"-inf\"" : "\"inf\""; }
  return fmt::format("{}", number);
}

}  // namespace

void json_writer::separate() {
  if (after_key_) {
    after_key_ = false;
  } else if (!has_one_.empty()) {
    if (has_one_.back()) { out_ << ", "; }
    has_one_.back() = true;
  }
}

void json_writer::open(char bracket) {
  separate();
  out_ << bracket;
  has_one_.push_back(false);
}

void json_writer::close(char bracket) {
  out_ << bracket;
  has_one_.pop_back();
}

/// Writes `content` as a JSON string. Escapes all control characters, including those of C1, which JSON allows but terminals interpret.
void json_writer::text(std::string_view content) {
  const auto mended = format::to_utf8(content);
  out_ << '"';
  for (std::string_view rest = mended; !rest.empty();) {
    const auto letter = rest.substr(0, detail::utf8_sequence_size(rest));
    if (letter == "\"" || letter == "\\") {
      out_ << '\\' << letter;
    } else if (letter == "\n") {
      out_ << "\\n";
    } else if (detail::is_control_character(letter)) {
      out_ << fmt::format("\\u{:04x}", static_cast<unsigned char>(letter.back()));  // the last byte is the code point
    } else {
      out_ << letter;
    }
    rest.remove_prefix(letter.size());
  }
  out_ << '"';
}

void json_writer::key(std::string_view name) {
  separate();
  text(name);
  out_ << ": ";
  after_key_ = true;
}

void json_writer::value(std::string_view content) {
  separate();
  text(content);
}

void json_writer::value(bool truth) {
  separate();
  out_ << (truth ? "true" : "false");
}

void json_writer::value(double number) {
  separate();
  out_ << number_json(number);
}

void json_writer::value(float number) {
  separate();
  out_ << number_json(number);
}

void json_writer::null() { literal("null"); }

void json_writer::literal(std::string_view json) {
  separate();
  out_ << json;
}

}  // namespace stepwell::tool
