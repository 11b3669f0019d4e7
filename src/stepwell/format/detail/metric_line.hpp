// SPDX-License-Identifier: Apache-2.0
//
// Metrics of a run as lines of text, in CSV or JSON. The files have the long form, with one tag per line, so new tags can be added at any
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace stepwell::format {

/// The content of one line.
struct metric_line {
  std::int64_t wall_microseconds = 0;  ///< Microseconds since 1970. Negative before.
  std::int64_t step = 0;
  std::string_view tag = {};
  std::string_view value = {};  ///< Text of the number, see `number_text`. Empty if there is no value.
};

/// The shortest text that is read back as the same number: "0.1", "1e+20", "-7", "nan", "inf", "-inf". A `long double` is rounded to a
/// `double`, and a boolean is written as 0 or 1.
class number_text {
public:
  static constexpr std::size_t max_size = 32;

  template<class Number>
    requires std::is_arithmetic_v<Number>
  explicit number_text(Number value) noexcept {
    if constexpr (std::is_floating_point_v<Number>) {
      spell(static_cast<std::conditional_t<std::is_same_v<Number, float>, float, double>>(value));
    } else {
      spell(static_cast<std::conditional_t<std::is_unsigned_v<Number>, std::uint64_t, std::int64_t>>(value));
    }
  }
  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

private:
  void spell(auto value) noexcept;

  char text_[max_size];
  std::size_t size_ = 0;
};

/// The first line of a CSV file.
inline constexpr std::string_view csv_metric_header = "wall_time,step,tag,value\n";

/// The beginning of each line of a JSON lines file.
inline constexpr std::string_view json_metric_beginning = R"({"wall_time":)";

/// Returns the first line of a CSV file with a column for each tag: `wall_time,step,loss,accuracy` and a line feed.
[[nodiscard]] std::string csv_row_header(std::span<const std::string> tags);
/// Returns an upper bound of the size of a line with this number of values.
[[nodiscard]] std::size_t csv_row_bound(std::size_t values) noexcept;
/// Writes `1700000000.250000,7,0.5,0.9` and a line feed. Returns the number of bytes written. `values` are texts of `number_text`, or empty.
/// @pre `into` has at least `csv_row_bound(values.size())` bytes.
std::size_t write_csv_row(std::span<std::byte> into, std::int64_t wall_microseconds, std::int64_t step,
                          std::span<const std::string> values) noexcept;

/// Returns true if spreadsheets read the cell `text` as a formula: if it begins with `=` or `@`, or with a sign and is not a number.
[[nodiscard]] bool is_formula(std::string_view text) noexcept;

/// Returns an upper bound of the size of the line in bytes.
[[nodiscard]] std::size_t csv_metric_bound(const metric_line& line) noexcept;
[[nodiscard]] std::size_t json_metric_bound(const metric_line& line) noexcept;

/// Writes `1700000000.250000,7,loss,0.5` and a line feed. Returns the number of bytes written.
/// A tag with a comma, a quote, a carriage return or a line feed is enclosed in quotes, and its own quotes are doubled. This is RFC 4180,
/// except that lines end without a carriage return. Line ends in the tag are written as spaces, so that each line is a row. A tag that
/// spreadsheets would read as a formula is written with an apostrophe before it.
/// @pre `into` has at least `csv_metric_bound(line)` bytes.
std::size_t write_csv_metric(std::span<std::byte> into, const metric_line& line) noexcept;

/// Writes `{"wall_time":1700000000.250000,"step":7,"tag":"loss","value":0.5}` and a line feed. Returns the number of bytes written.
/// JSON numbers are always finite. Other values are written as the strings "NaN", "Infinity" and "-Infinity", as in protobuf's JSON. An
/// empty value is written as null.
/// @pre `into` has at least `json_metric_bound(line)` bytes. The tag is UTF-8.
std::size_t write_json_metric(std::span<std::byte> into, const metric_line& line) noexcept;

}  // namespace stepwell::format
