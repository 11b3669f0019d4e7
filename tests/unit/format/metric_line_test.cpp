// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <stepwell/format/detail/metric_line.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace format = stepwell::format;
using format::metric_line;
using format::number_text;

namespace {

template<class Bound, class Write>
std::string written(const metric_line& line, Bound bound, Write write) {
  std::vector<std::byte> into(bound(line));
  const auto size = write(std::span(into), line);
  REQUIRE(size <= into.size());
  return {reinterpret_cast<const char*>(into.data()), size};
}
std::string csv(const metric_line& line) { return written(line, format::csv_metric_bound, format::write_csv_metric); }
std::string json(const metric_line& line) { return written(line, format::json_metric_bound, format::write_json_metric); }

template<class Number>
std::string text(Number value) {
  return std::string(number_text(value).view());
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a number is spelt with as few digits as read back as the same", "[format][metrics]") {
  CHECK(text(0.1F) == "0.1");
  CHECK(text(0.1) == "0.1");
  CHECK(text(static_cast<double>(0.1F)) == "0.10000000149011612");
  CHECK(text(1e20) == "1e+20");
  CHECK(text(-0.0) == "-0");
  CHECK(text(std::numeric_limits<double>::denorm_min()) == "5e-324");
  CHECK(text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(text(infinity) == "inf");
  CHECK(text(-infinity) == "-inf");
  CHECK(text(std::nan("")) == "nan");
  CHECK(text(-std::nan("")) == "nan");
}

TEST_CASE("a CSV line is time, step, tag, value", "[format][metrics]") {
  CHECK(csv({1'700'000'000'250'000, 7, "loss", "0.5"}) == "1700000000.250000,7,loss,0.5\n");
  CHECK(csv({5, -1, "", ""}) == "0.000005,-1,,\n");
}

TEST_CASE("a tag that would break a CSV line stands in quotes, quotes doubled, as RFC 4180 has it", "[format][metrics]") {
  CHECK(csv({0, 1, "a,b", "2"}) == "0.000000,1,\"a,b\",2\n");
  CHECK(csv({0, 1, "say \"hi\"", "2"}) == "0.000000,1,\"say \"\"hi\"\"\",2\n");
  CHECK(csv({0, 1, "back\\slash", "2"}) == "0.000000,1,back\\slash,2\n");
}

TEST_CASE("each line of a CSV file is a row: line ends in a tag become spaces", "[format][metrics]") {
  CHECK(csv({0, 1, "two\nlines", "2"}) == "0.000000,1,\"two lines\",2\n");
  CHECK(csv({0, 1, "a\r\nb", "2"}) == "0.000000,1,\"a  b\",2\n");
}

TEST_CASE("a tag that spreadsheets would read as a formula begins with an apostrophe", "[format][metrics]") {
  CHECK(csv({0, 1, "=1+1", "-2"}) == "0.000000,1,\"'=1+1\",-2\n");
  for (const auto* formula : {"=", "=a", "@a", "-a", "+a", "-1+2", "+", "-"}) { CHECK(format::is_formula(formula)); }
  for (const auto* other : {"", "a=1", "-1.5", "+2", "-inf", "1e5", "'=a"}) { CHECK_FALSE(format::is_formula(other)); }
}

TEST_CASE("a CSV row has a field for each column, and the longest row has room", "[format][metrics]") {
  const auto row = [](std::int64_t time, std::int64_t step, const std::vector<std::string>& values) {
    std::vector<std::byte> into(format::csv_row_bound(values.size()));
    const auto size = format::write_csv_row(into, time, step, values);
    REQUIRE(size <= into.size());
    return std::string(reinterpret_cast<const char*>(into.data()), size);
  };
  CHECK(row(1'700'000'000'250'001, 7, {"0.5", "", "-inf"}) == "1700000000.250001,7,0.5,,-inf\n");
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  CHECK(
      row(lowest, lowest, {std::string(number_text::max_size, '1')}).ends_with(",-9223372036854775808,11111111111111111111111111111111\n"));
}

TEST_CASE("times before 1970 are negative numbers", "[format][metrics]") {
  CHECK(csv({-1'500'000, 1, "a", "2"}) == "-1.500000,1,a,2\n");
  CHECK(csv({-1, 1, "a", "2"}) == "-0.000001,1,a,2\n");
  CHECK(csv({std::numeric_limits<std::int64_t>::min(), 1, "a", "2"}) == "-9223372036854.775808,1,a,2\n");
}

TEST_CASE("a JSON line is an object that other readers read", "[format][metrics]") {
  CHECK(json({1'700'000'000'250'000, 7, "loss", "0.5"}) == "{\"wall_time\":1700000000.250000,\"step\":7,\"tag\":\"loss\",\"value\":0.5}\n");
  std::string tag;
  for (char one = 0; one < 127; ++one) { tag += one; }
  tag += "\u00e4\u20ac\U0001F642";
  const auto read = nlohmann::json::parse(json({1'250'000, 7, tag, "1e+20"}));
  CHECK(read.at("tag").get<std::string>() == tag);
  CHECK(read.at("value").get<double>() == 1e20);
  CHECK(read.at("step").get<int>() == 7);
  CHECK(read.at("wall_time").get<double>() == 1.25);
}

TEST_CASE("NaN and infinities are strings in JSON, as in protobuf, and no value is null", "[format][metrics]") {
  CHECK(nlohmann::json::parse(json({0, 1, "x", text(std::nan(""))})).at("value") == "NaN");
  CHECK(nlohmann::json::parse(json({0, 1, "x", text(infinity)})).at("value") == "Infinity");
  CHECK(nlohmann::json::parse(json({0, 1, "x", text(-infinity)})).at("value") == "-Infinity");
  CHECK(nlohmann::json::parse(json({0, 1, "x", ""})).at("value").is_null());
}

TEST_CASE("the longest line of each kind has room", "[format][metrics]") {
  const std::string tag(100, '\x01');
  const std::string quotes(100, '"');
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  for (const std::string_view value : {"-inf", "-2.2250738585072014e-308"}) {
    CHECK(csv({most, least, quotes, value}).size() > 200);
    CHECK(json({most, least, tag, value}).size() > 600);
  }
}
