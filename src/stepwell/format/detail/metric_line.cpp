// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/detail/metric_line.hpp"

#include "stepwell/base/detail/default_float_mode.hpp"
#include "stepwell/base/detail/read_double.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

namespace stepwell::format {
namespace {

/// An output that appends text to a span. The span must be large enough.
class text_into {
public:
  explicit text_into(std::span<std::byte> into) noexcept : begin_(into.data()), at_(into.data()), end_(into.data() + into.size()) {}

  void put(std::string_view text) noexcept {
    assert(text.size() <= static_cast<std::size_t>(end_ - at_));
    if (!text.empty()) { std::memcpy(at_, text.data(), text.size()); }
    at_ += text.size();
  }
  void put(char one) noexcept { put(std::string_view(&one, 1)); }
  void put_number(std::int64_t value) noexcept { put(number_text(value).view()); }
  /// Appends the time in seconds, with six digits after the decimal point.
  void put_seconds(std::int64_t microseconds) noexcept {
    if (microseconds < 0) { put('-'); }
    const auto size = microseconds < 0 ? -static_cast<std::uint64_t>(microseconds) : static_cast<std::uint64_t>(microseconds);
    put_number(static_cast<std::int64_t>(size / 1'000'000));
    put('.');
    auto rest = size % 1'000'000;
    char digits[6];
    for (auto digit = std::rbegin(digits); digit != std::rend(digits); ++digit, rest /= 10) { *digit = static_cast<char>('0' + rest % 10); }
    put(std::string_view(digits, sizeof digits));
  }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

private:
  std::byte* begin_;
  std::byte* at_;
  std::byte* end_;
};

constexpr std::size_t csv_overhead = 20 + 7 + 20 + 3 + 3 + 1;  // time, step, quotes and apostrophe, commas, line feed

void put_csv_field(text_into& out, std::string_view text) noexcept {
  constexpr std::string_view special("\0,\"\r\n", 5);
  if (text.find_first_of(special) == std::string_view::npos && !is_formula(text)) { return out.put(text); }
  out.put('"');
  if (is_formula(text)) { out.put('\''); }
  for (const char one : text) {
    if (one == '"') { out.put('"'); }
    out.put(one == '\r' || one == '\n' || one == '\0' ? ' ' : one);  // so that each line is a row, and a zero byte is damage
  }
  out.put('"');
}

void put_json_text(text_into& out, std::string_view text) noexcept {
  constexpr std::string_view hex = "0123456789abcdef";
  out.put('"');
  for (const char one : text) {
    const auto code = static_cast<unsigned char>(one);
    if (code < 0x20) {
      out.put("\\u00");
      out.put(hex[code >> 4U]);
      out.put(hex[code & 15U]);
      continue;
    }
    if (one == '"' || one == '\\') { out.put('\\'); }
    out.put(one);
  }
  out.put('"');
}

std::string_view json_value(std::string_view spelt) noexcept {
  if (spelt.empty()) { return "null"; }
  if (spelt == "nan") { return "\"NaN\""; }
  if (spelt == "inf") { return "\"Infinity\""; }
  if (spelt == "-inf") { return "\"-Infinity\""; }
  return spelt;
}

}  // namespace

std::string csv_row_header(std::span<const std::string> tags) {
  std::string line = "wall_time,step";
  for (const auto& tag : tags) {
    std::string field(2 * tag.size() + 2, '\0');
    text_into out(std::as_writable_bytes(std::span(field)));
    put_csv_field(out, tag);
    line.append(",").append(field, 0, out.size());
  }
  return line + "\n";
}

void number_text::spell(auto value) noexcept {
  const stepwell::detail::default_float_mode mode;
  if constexpr (std::is_floating_point_v<decltype(value)>) {
    const std::string_view nan = "nan";  // the sign of a NaN is not written
    if (std::isnan(value)) {
      size_ = nan.copy(text_, sizeof text_);
      return;
    }
  }
  size_ = static_cast<std::size_t>(std::to_chars(text_, text_ + sizeof text_, value).ptr - text_);
}
template void number_text::spell(float) noexcept;
template void number_text::spell(double) noexcept;
template void number_text::spell(std::int64_t) noexcept;
template void number_text::spell(std::uint64_t) noexcept;

std::size_t csv_row_bound(std::size_t values) noexcept { return csv_overhead + values * (1 + number_text::max_size); }

std::size_t write_csv_row(std::span<std::byte> into, std::int64_t wall_microseconds, std::int64_t step,
                          std::span<const std::string> values) noexcept {
  text_into out(into);
  out.put_seconds(wall_microseconds);
  out.put(',');
  out.put_number(step);
  for (const auto& value : values) {
    out.put(',');
    out.put(value);
  }
  out.put('\n');
  return out.size();
}

bool is_formula(std::string_view text) noexcept {
  if (text.empty() || std::string_view("=+-@").find(text.front()) == std::string_view::npos) { return false; }
  double number = 0;
  const auto* const begin = text.data() + (text.front() == '+' ? 1 : 0);
  const auto* const end = text.data() + text.size();
  return begin == end || stepwell::detail::read_double(begin, end, number).ptr != end;
}

std::size_t csv_metric_bound(const metric_line& line) noexcept { return csv_overhead + 2 * line.tag.size() + line.value.size(); }

std::size_t json_metric_bound(const metric_line& line) noexcept {
  constexpr std::string_view longest_value = "\"-Infinity\"";
  constexpr std::size_t names = std::string_view(R"({"wall_time":,"step":,"tag":"","value":})").size();
  return csv_overhead + names + 6 * line.tag.size() + std::max(line.value.size(), longest_value.size());
}

std::size_t write_csv_metric(std::span<std::byte> into, const metric_line& line) noexcept {
  text_into out(into);
  out.put_seconds(line.wall_microseconds);
  out.put(',');
  out.put_number(line.step);
  out.put(',');
  put_csv_field(out, line.tag);
  out.put(',');
  out.put(line.value);
  out.put('\n');
  return out.size();
}

std::size_t write_json_metric(std::span<std::byte> into, const metric_line& line) noexcept {
  text_into out(into);
  out.put(json_metric_beginning);
  out.put_seconds(line.wall_microseconds);
  out.put(R"(,"step":)");
  out.put_number(line.step);
  out.put(R"(,"tag":)");
  put_json_text(out, line.tag);
  out.put(R"(,"value":)");
  out.put(json_value(line.value));
  out.put("}\n");
  return out.size();
}

}  // namespace stepwell::format
