// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_directory.hpp"
#include "tool_run.hpp"

#include <tool/chart.hpp>
#include <tool/commands.hpp>

#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/summary/writer.hpp>

#include <algorithm>
#include <limits>
#include <sstream>

namespace sw = stepwell;
namespace tool = stepwell::tool;
using sw::test::run_tool;
using sw::test::temporary_directory;
using tool::exit_code;

namespace {

/// Writes scalars of "loss" with the values scale/step.
void write_losses(const std::string& directory, std::int64_t from, std::int64_t to, float scale = 1) {
  sw::summary::writer writer(directory, {.clock = std::make_shared<sw::manual_clock>()});
  writer.add_session_log(sw::format::session_status::start, from);
  for (auto step = from; step <= to; ++step) { writer.add_scalar("loss", scale / static_cast<float>(step), step); }
  writer.close();
}

std::vector<std::string> texts(const tool::axis& of) {
  std::vector<std::string> all;
  for (const auto& tick : of.ticks()) { all.push_back(tick.text); }
  return all;
}

}  // namespace

TEST_CASE("a chart in the terminal has numbers at its axes and a line that says what was drawn", "[tool][plot]") {
  const temporary_directory directory;
  write_losses(directory.path(), 1, 8);
  const auto said = run_tool({"plot", directory.path(), "--tag", "loss", "--width", "40", "--height", "5", "--ascii"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out ==
        "   loss\n"
        "1 +**\n"
        "  |  **\n"
        "  |    ****\n"
        "  |        *************************\n"
        "0 +                                 ***\n"
        "  +--------------------+---------------\n"
        "                       5\n"
        "  -- loss  last 0.125 at step 8, from 0.125 to 1, 8 points\n");
}

TEST_CASE("braille dots draw lines finer than letters", "[tool][plot]") {
  const temporary_directory directory;
  write_losses(directory.path(), 1, 200);
  const auto said = run_tool({"plot", directory.path(), "--tag", "loss", "--width", "50", "--height", "8"});
  CHECK(said.out.find("┤") != std::string::npos);
  CHECK(said.out.find("\xe2\xa0") != std::string::npos);  // U+2800 and up
  CHECK(said.out.find('\x1b') == std::string::npos);      // colours are only for terminals
}

TEST_CASE("plot does not draw values of steps that were rolled back", "[tool][plot]") {
  const temporary_directory directory;
  write_losses(directory.path(), 1, 100);
  write_losses(directory.path(), 51, 60, 2);
  const auto said = run_tool({"plot", directory.path(), "--tag", "loss"});
  CHECK(said.out.find("at step 60") != std::string::npos);
  CHECK(said.out.find("60 points") != std::string::npos);
}

TEST_CASE("--from and --to choose steps, --log needs a positive value", "[tool][plot]") {
  const temporary_directory directory;
  write_losses(directory.path(), 1, 100, -1);
  CHECK(run_tool({"plot", directory.path(), "--tag", "loss", "--from", "10", "--to", "19"}).out.find("10 points") != std::string::npos);
  CHECK(run_tool({"plot", directory.path(), "--tag", "loss", "--log"}).how == exit_code::usage);
}

TEST_CASE("--log leaves out values of 0 and below, and says how many", "[tool][plot]") {
  const temporary_directory directory;
  {
    sw::summary::writer writer(directory.path(), {.clock = std::make_shared<sw::manual_clock>()});
    const std::vector<double> losses{1, 0, 0.1, -2, 0.01};
    for (std::size_t i = 0; i < losses.size(); ++i) { writer.add_scalar("loss", losses[i], static_cast<std::int64_t>(i)); }
    writer.close();
  }
  const auto said = run_tool({"plot", directory.path(), "--tag", "loss", "--log", "--ascii"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("3 points, and 2 of 0 or below left out (the axis is logarithmic)\n") != std::string::npos);
}

TEST_CASE("a tag that is not there is an error that names those that are", "[tool][plot]") {
  const temporary_directory directory;
  write_losses(directory.path(), 1, 2);
  const auto said = run_tool({"plot", directory.path(), "--tag", "los"});
  CHECK(said.how == exit_code::unreadable);
  CHECK(said.err.find("tags with scalars: loss") != std::string::npos);
}

TEST_CASE("any number of points takes bounded memory, and no spike is lost", "[tool][plot]") {
  tool::series line("x", 64);
  for (int i = 0; i < 100'000; ++i) { line.add(i, i == 77'777 ? 1e6 : 0); }
  line.add(100'000, std::numeric_limits<double>::quiet_NaN());
  CHECK(line.groups().size() <= 64);
  CHECK(line.points() == 100'000);
  CHECK(line.not_finite() == 1);
  CHECK(tool::y_range({line}).high == 1e6);
  CHECK(tool::x_range({line}).high == 99'999);
  line.cut_from(50'000);
  CHECK(tool::x_range({line}).high < 50'000);
  CHECK(tool::y_range({line}).high == 0);
}

TEST_CASE("ticks are round numbers that can be told apart", "[tool][plot]") {
  CHECK(texts(tool::axis({0, 1}, 6, true)) == std::vector<std::string>{"0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(tool::axis({-3, 7}, 6, true)) == std::vector<std::string>{"-4", "-2", "0", "2", "4", "6", "8"});
  CHECK(texts(tool::axis({0, 3e7}, 4, false)) == std::vector<std::string>{"0", "10M", "20M", "30M"});
  CHECK(texts(tool::axis({1e-9, 3e-9}, 3, true)) == std::vector<std::string>{"1e-09", "2e-09", "3e-09"});
  CHECK(texts(tool::axis({0.001, 100}, 9, true, true)) == std::vector<std::string>{"0.001", "0.01", "0.1", "1", "10", "100"});
}

TEST_CASE("any finite values have an axis, the greatest and the least of all too", "[tool][plot]") {
  const double most = std::numeric_limits<double>::max();
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {-most, most}, {most, most}, {0, 0}, {5e-324, 5e-324}, {0, 5e-324}, {1, 1 + 1e-15}, {-1e300, 1e-300}}) {
    for (const bool is_round : {true, false}) {
      const tool::axis of({low, high}, 5, is_round);
      INFO(low << " to " << high);
      CHECK(of.place_of(low) >= -1e-6);
      CHECK(of.place_of(high) <= 1 + 1e-6);
    }
  }
}

TEST_CASE("without colours several lines of a chart have different characters", "[tool][plot]") {
  const tool::chart drawn{.lines = {tool::series("a"), tool::series("b")}, .title = "a, b", .width = 30, .height = 4};
  auto two = drawn;
  two.lines[0].add(1, 2);
  two.lines[0].add(9, 2);
  two.lines[1].add(1, 4);
  two.lines[1].add(9, 4);
  std::ostringstream out;
  tool::console to{.out = out, .err = out};
  tool::draw_in_terminal(two, to);
  CHECK(out.str().find("a, b") != std::string::npos);
  CHECK(out.str().find("  ** a") != std::string::npos);
  CHECK(out.str().find("  ++ b") != std::string::npos);
  CHECK(out.str().find("+++++++") != std::string::npos);
  CHECK(out.str().find("*******") != std::string::npos);
  std::ostringstream coloured;
  tool::console terminal{.out = coloured, .err = coloured, .colours = true};
  tool::draw_in_terminal(two, terminal);
  CHECK(coloured.str().find("\x1b[36m") != std::string::npos);
  CHECK(coloured.str().find("\x1b[33m") != std::string::npos);
}

namespace {

/// Writes scalars of several tags: "train/loss" falls, "train/gain" is negative, "eval/loss" is constant.
void write_tags(const std::string& directory) {
  sw::summary::writer writer(directory, {.clock = std::make_shared<sw::manual_clock>()});
  for (std::int64_t step = 1; step <= 10; ++step) {
    writer.add_scalar("train/loss", 1.0 / static_cast<double>(step), step);
    writer.add_scalar("train/gain", -static_cast<double>(step), step);
    writer.add_scalar("eval/loss", 3.0, step);
  }
  writer.close();
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) { ++count; }
  return count;
}

}  // namespace

TEST_CASE("plot draws all scalars by default, and those of several tags and patterns if asked", "[tool][plot]") {
  const temporary_directory directory;
  write_tags(directory.path());
  const auto all = run_tool({"plot", directory.path()});
  CHECK(all.how == exit_code::good);
  CHECK(count_of(all.out, " 10 points\n") == 3);
  const auto losses = run_tool({"plot", directory.path(), "--tag", "*/loss"});
  CHECK(count_of(losses.out, " 10 points\n") == 2);
  CHECK(losses.out.find("gain") == std::string::npos);
  const auto two = run_tool({"plot", directory.path(), "--tag", "train/gain", "--tag", "eval/*"});
  CHECK(two.out.find("── train/gain") != std::string::npos);
  CHECK(two.out.find("── eval/loss") != std::string::npos);
  CHECK(two.out.find("train/loss") == std::string::npos);
  const auto missing = run_tool({"plot", directory.path(), "--tag", "train/loss", "--tag", "test/*"});
  CHECK(missing.how == exit_code::unreadable);
  CHECK(missing.err.find("no scalars of test/*") != std::string::npos);
}

TEST_CASE("a line that a logarithmic axis cannot show is left out, and named", "[tool][plot]") {
  const temporary_directory directory;
  write_tags(directory.path());
  const auto said = run_tool({"plot", directory.path(), "--log"});
  CHECK(said.how == exit_code::good);
  CHECK(count_of(said.out, " 10 points\n") == 2);
  CHECK(said.out.find("not drawn: train/gain: every value is 0 or below, and the axis is logarithmic\n") != std::string::npos);
}

TEST_CASE("several runs are lines in one picture, for each tag", "[tool][plot]") {
  const temporary_directory directory;
  write_tags(directory / "a");
  write_tags(directory / "b");
  const auto said = run_tool({"plot", directory / "a", directory / "b", "--tag", "*/loss"});
  CHECK(count_of(said.out, "  ** ") == 2);  // a chart for each tag
  CHECK(count_of(said.out, "  ++ ") == 2);
  const auto together = run_tool({"plot", directory / "a", directory / "b", "--tag", "*/loss", "--together"});
  CHECK(count_of(together.out, " 10 points\n") == 4);
  CHECK(count_of(together.out, "  ** ") == 1);
}

TEST_CASE("plot --ascii prints only ASCII characters, also of names and in errors", "[tool][plot]") {
  const temporary_directory directory;
  for (const std::string run : {"α", "b"}) {
    sw::summary::writer writer(directory / run, {.clock = std::make_shared<sw::manual_clock>()});
    for (std::int64_t step = 1; step <= 10; ++step) {
      writer.add_scalar("loss/π", static_cast<double>(step), step);
      writer.add_scalar("ρ", -1.0, step);
    }
    writer.close();
  }
  const auto is_ascii = [](const std::string& text) {
    return std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; });
  };
  const std::vector<std::string> one = {"plot", directory / "b", "--ascii"};
  const std::vector<std::string> both = {"plot", directory / "α", directory / "b", "--ascii"};
  for (auto words : {one, both}) {
    for (const std::string more : {"--together", "--log", "--tag=nothing"}) {
      auto wanted = words;
      wanted.push_back(more);
      const auto said = run_tool(wanted);
      INFO(said.out << said.err);
      CHECK(is_ascii(said.out + said.err));
      CHECK((said.out + said.err).find("\\xcf\\x80") != std::string::npos);
    }
  }
}

TEST_CASE("steps above 2^53 are drawn and named exactly", "[tool][plot]") {
  const temporary_directory directory;
  constexpr std::int64_t first = (std::int64_t{1} << 53) + 1;
  {
    sw::summary::writer writer(directory.path(), {.clock = std::make_shared<sw::manual_clock>()});
    for (std::int64_t i = 0; i < 5; ++i) { writer.add_scalar("loss", static_cast<double>(i % 2), first + i); }
    writer.close();
  }
  const auto said = run_tool({"plot", directory.path(), "--width", "100"});
  CHECK(said.out.find("at step 9007199254740997,") != std::string::npos);
  CHECK(said.out.find("\n9007199254740993 ") != std::string::npos);  // a tick
  CHECK(said.out.find(" 5 points") != std::string::npos);
  CHECK(tool::step_of(1e300, first) == std::numeric_limits<std::int64_t>::max());
  CHECK(tool::step_of(-9e18, std::numeric_limits<std::int64_t>::min()) == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a line without a value in the chosen steps is named", "[tool][plot]") {
  const temporary_directory directory;
  write_losses(directory / "a", 1, 8);
  write_losses(directory / "b", 1, 4);
  const auto said = run_tool({"plot", directory / "a", directory / "b", "--from", "6"});
  CHECK(said.how == exit_code::good);
  CHECK(said.out.find("not drawn: " + (directory / "b") + ": no value in the chosen steps\n") != std::string::npos);
}
