// SPDX-License-Identifier: Apache-2.0
//
// `stepwell plot`: scalars of event files as lines, in the terminal or as a picture.
#pragma once

#include "tool/console.hpp"
#include "tool/series.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::tool {

struct plot_options {
  std::vector<std::string> targets;  ///< Directories of event files, or event files.
  std::vector<std::string> tags;
  std::string svg = {};    ///< A file to write, instead of the terminal.
  int width = 0;           ///< Columns (SVG: pixels); 0: that of the terminal (SVG: 860).
  int height = 0;          ///< Lines; 0: 20 (SVG: 480).
  bool log_scale = false;  ///< Values of 0 and below are then left out, and counted.
  bool ascii = false;
  std::optional<std::int64_t> from_step = {};
  std::optional<std::int64_t> to_step = {};
};

/// One line a tag and target. As viewers do it, what a run wrote at steps to which it later went back is left out.
/// @errors `not_found_error` that names the scalars there are. @cost Memory for 65536 groups of points a line.
[[nodiscard]] outcome plot(const plot_options& options, console& to);

/// What both kinds of charts draw.
struct chart {
  std::vector<series> lines;
  std::string title;
  int width = 80;
  int height = 20;
  bool log_scale = false;
};

/// Returns ", and 3 not finite", ", and 2 of 0 or below left out (...)", or both; empty if the line has all values.
[[nodiscard]] std::string left_out_text(const series& line);

/// Braille dots (`ascii`: stars), with numbers at the axes. Several lines need colours to be told apart: without, each
/// gets a chart of its own.
void draw_in_terminal(const chart& drawn, bool ascii, console& to);
/// A whole SVG document, without scripts or fonts of its own.
[[nodiscard]] std::string svg_of(const chart& drawn);

}  // namespace stepwell::tool
