// SPDX-License-Identifier: Apache-2.0
//
// The main function of the program `stepwell`.
#include "tool/command_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace {

/// Returns the width reported by the terminal, else that of the variable COLUMNS, else 80.
int width_of_terminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) { return size.ws_col; }
  const char* columns = std::getenv("COLUMNS");
  const int number = columns != nullptr ? std::atoi(columns) : 0;
  return number > 0 && number < 10000 ? number : 80;
}

/// Returns true if the output is a terminal with colours, and NO_COLOR is unset or empty (see no-color.org).
bool wants_colours() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

/// Returns true if the variables of the locale name one with UTF-8.
bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {  // in the order of precedence
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') { continue; }
    std::string text;
    for (const char* letter = value; *letter != '\0'; ++letter) {
      if (*letter != '-') { text += static_cast<char>(std::tolower(static_cast<unsigned char>(*letter))); }
    }
    return text.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  stepwell::tool::console to{
      .out = std::cout, .err = std::cerr, .width = width_of_terminal(), .colours = wants_colours(), .ascii = !is_utf8_locale()};
  return static_cast<int>(stepwell::tool::run({argv + 1, argv + argc}, to));
}
