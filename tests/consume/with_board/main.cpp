// SPDX-License-Identifier: Apache-2.0
//
// Serves the board of a directory, with the installed component.
#include <stepwell/board/board_hook.hpp>

#include <cstdio>
#include <filesystem>

int main() {
  std::filesystem::create_directory("runs");
  const stepwell::directory_board board(
      {.port = 0, .runs_directory = "runs", .on_ready = [](const std::string& url) { std::puts(url.c_str()); }});
  return board.url().starts_with("http://127.0.0.1:") ? 0 : 1;
}
