// SPDX-License-Identifier: Apache-2.0
//
// A number of a run as one line of text: CSV and JSON. In long form, a tag a line, so that a file may get new tags at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stepwell::format {

/// `value` is spelt as it shall stand there: see `number_text`.
struct metric_line {
  std::int64_t wall_microseconds = 0;  ///< Since 1970, at least 0.
  std::int64_t step = 0;
  std::string_view tag = {};
  std::string_view value = {};
};

/// The shortest text that reads back as the same number: "0.1", "1e+20", "-7", "nan", "inf", "-inf".
class number_text {
public:
  explicit number_text(float value) noexcept;
  explicit number_text(double value) noexcept;
  explicit number_text(std::int64_t value) noexcept;
  explicit number_text(std::uint64_t value) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

private:
  template<class Number>
  void spell(Number value) noexcept;

  char text_[32];
  std::size_t size_ = 0;
};

/// The first line of a CSV file of these.
inline constexpr std::string_view csv_metric_header = "wall_time,step,tag,value\n";

/// How each line of a JSON lines file of these begins.
inline constexpr std::string_view json_metric_beginning = R"({"wall_time":)";

/// Room that is enough for the line.
[[nodiscard]] std::size_t csv_metric_bound(const metric_line& line) noexcept;
[[nodiscard]] std::size_t json_metric_bound(const metric_line& line) noexcept;

/// `1700000000.250000,7,loss,0.5` and a line feed. A tag with a comma, a quote or the end of a line stands in quotes, its
/// quotes doubled (RFC 4180, but for the carriage returns at the ends of lines). How many bytes of `into` it took.
/// @pre `into` has the bound's size.
std::size_t write_csv_metric(std::span<std::byte> into, const metric_line& line) noexcept;

/// `{"wall_time":1700000000.250000,"step":7,"tag":"loss","value":0.5}` and a line feed. JSON has no number that is not finite:
/// those are the strings "NaN", "Infinity" and "-Infinity", as protobuf spells them; no value is null.
/// @pre As above; the tag is UTF-8.
std::size_t write_json_metric(std::span<std::byte> into, const metric_line& line) noexcept;

}  // namespace stepwell::format
