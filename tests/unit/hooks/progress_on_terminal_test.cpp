// SPDX-License-Identifier: Apache-2.0
//
// The screen of a terminal on which a program displays its progress, its log and its own output.
#include "support/catch.hpp"
#include "support/screen.hpp"
#include "support/terminal_process.hpp"

#include <sys/wait.h>
#include <csignal>
#include <cstddef>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace {

using sw_screen = stepwell::test::screen;
using words = std::vector<std::string>;

constexpr unsigned short columns = 100;

/// Returns everything that the program of progress_on_terminal.cpp writes.
stepwell::test::terminal_output output_of(const std::string& scenario, words environment = {"TERM=xterm"}) {
  return stepwell::test::run_on_terminal({STEPWELL_PROGRESS_ON_TERMINAL, scenario}, std::move(environment), columns);
}

/// Returns the lines that a user sees at the end. Checks that no line was too long.
words screen_after(const std::string& output) {
  sw_screen screen(columns);
  screen.write(output);
  auto lines = screen.lines();
  for (const auto& line : lines) { UNSCOPED_INFO(line); }
  CHECK_FALSE(screen.has_wrapped());
  return lines;
}

bool has_colours(const std::string& output) { return output.find("\x1b[0m") != std::string::npos; }

}  // namespace

TEST_CASE("nested sessions, the log and the user's own lines share the terminal, and each has lines of its own",
          "[hooks][progress][terminal]") {
  const auto output = output_of("nested");
  CHECK(output.status == 0);
  const auto lines = screen_after(output.text);
  REQUIRE(lines.size() == 7);
  CHECK(std::regex_match(lines[0], std::regex(R"(\d\d:\d\d:\d\dZ info: a message)")));
  CHECK(lines[1] == "a line of the user's");
  CHECK_THAT(lines[2], ContainsSubstring("step 2/4   50%  inner 2.0000     1.00 steps/s"));
  CHECK(lines[3] == "[inner]  finished at step 2: 2 steps in 0:02, inner 2");
  CHECK_THAT(lines[4], ContainsSubstring("step 2/4   50%  outer 2.0000     0.50 steps/s"));
  CHECK(lines[5] == "[outer]  finished at step 2: 2 steps in 0:04, outer 2");
  CHECK(lines[6].empty());  // here the shell continues
}

TEST_CASE("the message of an exception that ends the program begins on a line of its own", "[hooks][progress][terminal]") {
  const std::string scenario = GENERATE("step_fails", "loop_fails");
  CAPTURE(scenario);
  const auto output = output_of(scenario);
  CHECK(WIFSIGNALED(output.status));
  CHECK(WTERMSIG(output.status) == SIGABRT);
  auto lines = screen_after(output.text);
  REQUIRE(lines.size() >= 3);
  if (scenario == "step_fails") {  // the log has a line of its own, too
    CHECK_THAT(lines[0], ContainsSubstring("error: [failing] the step failed at step 2: boom"));
    lines.erase(lines.begin());
  }
  CHECK_THAT(lines[0], ContainsSubstring("failing "));
  CHECK((lines[1].starts_with("terminat") || lines[1].starts_with("libc++abi: terminat")));
  CHECK_THAT(output.text, ContainsSubstring("boom"));
}

TEST_CASE("on a terminal the line has colours, unless NO_COLOR is set, and Unicode if the locale has it", "[hooks][progress][terminal]") {
  const auto plain = output_of("nested", {"TERM=xterm", "NO_COLOR=1", "LANG=C"}).text;
  CHECK_FALSE(has_colours(plain));
  CHECK(plain.find("\x1b[K") != std::string::npos);  // the line is drawn over itself nevertheless
  const auto rich = output_of("nested", {"TERM=xterm", "LANG=C"}).text;
  CHECK(has_colours(rich));
  const auto bar = [](words environment) { return output_of("bar", std::move(environment)).text; };
  CHECK_THAT(bar({"TERM=xterm", "LANG=de_DE.UTF-8"}), ContainsSubstring("━"));
  CHECK_THAT(bar({"TERM=xterm", "LANG=C", "LC_CTYPE=C.utf8"}), ContainsSubstring("━"));
  CHECK(bar({"TERM=xterm", "LANG=de_DE.UTF-8", "LC_ALL=C"}).find("━") == std::string::npos);
  CHECK(bar({"TERM=xterm"}).find("━") == std::string::npos);
}

TEST_CASE("on a dumb terminal the lines are plain", "[hooks][progress][terminal]") {
  const auto output = output_of("nested", {"TERM=dumb", "LANG=C.UTF-8"}).text;
  CHECK(output.find('\x1b') == std::string::npos);
  const auto lines = screen_after(output);
  REQUIRE(lines.size() == 7);
  CHECK(lines[2] == "[inner]  step 2/4   50%  inner 2  1 steps/s  0:02");
  CHECK(lines[3] == "[inner]  finished at step 2: 2 steps in 0:02, inner 2");
  CHECK(lines[4] == "[outer]  step 2/4   50%  outer 2  0.5 steps/s  0:04");
}
